//! Asking whether a value is about to be dropped, under every interleaving: `RUSTFLAGS="--cfg loom"
//! cargo test -p cuda-handles --release --test loom_destructors`.
#![cfg(loom)]

#[path = "../src/reclaim/destructors.rs"]
#[allow(dead_code)]
mod destructors;
#[path = "../src/destroy/list.rs"]
#[allow(dead_code)]
mod list;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
}

use destructors::Destructors;
use list::{List, Node};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use loom::thread;

/// A value that the driver owes, and the places that it moves through.
struct World {
    owed: AtomicBool,
    payloads: List<()>,
    destructors: Destructors,
    /// Whether the value keeps another one, which the driver owes once the first is dropped.
    keeps_another: bool,
    dropped: AtomicBool,
}

impl World {
    fn new(keeps_another: bool) -> Arc<Self> {
        Arc::new(Self {
            owed: AtomicBool::new(true),
            payloads: List::starting_with(AtomicPtr::new(core::ptr::null_mut())),
            destructors: Destructors::starting_with(AtomicU64::new(0), AtomicU64::new(0)),
            keeps_another,
            dropped: AtomicBool::new(false),
        })
    }

    /// The driver gives the value back.
    fn give_back(&self) {
        self.payloads.push(Node::new(()));
        self.owed.store(false, Ordering::Release);
    }

    /// The dropping thread's round.
    fn drop_values(&self) {
        let _destroying = self.destructors.begin();
        for () in self.payloads.take() {
            if self.keeps_another {
                self.owed.store(true, Ordering::Release);
            }
            self.dropped.store(true, Ordering::Relaxed);
        }
    }

    fn is_coming(&self) -> bool {
        self.destructors.are_coming(|| self.owed.load(Ordering::Acquire) || !self.payloads.is_empty())
    }
}

#[test]
fn a_value_that_does_not_come_is_dropped() {
    loom::model(|| {
        let world = World::new(false);
        let (driver, dropping) = (Arc::clone(&world), Arc::clone(&world));
        let driver = thread::spawn(move || driver.give_back());
        let dropping = thread::spawn(move || dropping.drop_values());
        if !world.is_coming() {
            assert!(world.dropped.load(Ordering::Relaxed));
        }
        driver.join().unwrap();
        dropping.join().unwrap();
    });
}

#[test]
fn a_value_that_another_one_kept_is_seen_to_come() {
    loom::model(|| {
        let world = World::new(true);
        world.give_back();
        let dropping = Arc::clone(&world);
        let dropping = thread::spawn(move || dropping.drop_values());
        assert!(world.is_coming());
        dropping.join().unwrap();
        assert!(world.is_coming());
    });
}
