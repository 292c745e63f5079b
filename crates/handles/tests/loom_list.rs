//! The reaper's list under every interleaving: `RUSTFLAGS="--cfg loom" cargo test -p cuda-handles
//! --release --test loom_list`.
#![cfg(loom)]

#[path = "../src/destroy/list.rs"]
#[allow(dead_code)]
mod list;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicPtr, Ordering};
}

use list::{List, Node};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicPtr;
use loom::thread;

/// A value whose writing must have happened before its reading; loom checks that.
struct Value(UnsafeCell<usize>);

impl Value {
    fn node(value: usize) -> Box<Node<Self>> {
        let cell = Self(UnsafeCell::new(0));
        // SAFETY: the cell has no other user yet.
        cell.0.with_mut(|inner| unsafe { *inner = value });
        Node::new(cell)
    }

    fn read(self) -> usize {
        // SAFETY: the value was taken out of the list and is ours.
        self.0.with(|inner| unsafe { *inner })
    }
}

// SAFETY: the cell is used by one thread at a time, which is what loom checks here.
unsafe impl Send for Value {}

fn empty() -> Arc<List<Value>> {
    Arc::new(List::starting_with(AtomicPtr::new(core::ptr::null_mut())))
}

#[test]
fn what_two_threads_push_is_taken_once_and_in_order() {
    loom::model(|| {
        let list = empty();
        let pushers: Vec<_> = [10, 20]
            .into_iter()
            .map(|first| {
                let list = Arc::clone(&list);
                thread::spawn(move || {
                    list.push(Value::node(first));
                    list.push(Value::node(first + 1));
                })
            })
            .collect();
        let mut taken: Vec<usize> = list.take().map(Value::read).collect();
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        taken.extend(list.take().map(Value::read));
        let of =
            |first: usize| taken.iter().copied().filter(|value| value / 10 == first / 10).collect::<Vec<_>>();
        assert_eq!((of(10), of(20)), (vec![10, 11], vec![20, 21]));
        assert!(list.is_empty());
    });
}

#[test]
fn two_takers_share_what_is_pushed() {
    loom::model(|| {
        let list = empty();
        let (pushing, taking) = (Arc::clone(&list), Arc::clone(&list));
        let pusher = thread::spawn(move || {
            pushing.push(Value::node(1));
            pushing.push(Value::node(2));
        });
        let taker = thread::spawn(move || taking.take().map(Value::read).collect::<Vec<_>>());
        let mut taken: Vec<usize> = list.take().map(Value::read).collect();
        pusher.join().unwrap();
        taken.extend(taker.join().unwrap());
        taken.extend(list.take().map(Value::read));
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    });
}
