//! User objects, and the graphs that keep them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;

use cuda_handles::{GraphHandle, UserObject};
use cuda_tests::{
    Kind, SOON, allocations_in_destructors, calls_from_destructors, count, live, no_leaks, settle, setup,
    until,
};

#[derive(Default)]
struct Dropped {
    times: AtomicUsize,
    on: std::sync::Mutex<Option<ThreadId>>,
}

struct Payload(Arc<Dropped>);

impl Drop for Payload {
    fn drop(&mut self) {
        self.0.times.fetch_add(1, Ordering::SeqCst);
        *self.0.on.lock().unwrap() = Some(std::thread::current().id());
    }
}

#[test]
fn a_user_object_lives_until_its_graph_and_its_handle_are_gone() {
    let context = setup();
    no_leaks(|| {
        let dropped = Arc::new(Dropped::default());
        let graph = GraphHandle::create(&context).unwrap();
        let before = live().of(Kind::UserObject);
        let object = UserObject::new(&context, Box::new(Payload(dropped.clone()))).unwrap();
        assert_eq!(live().of(Kind::UserObject), before + 1);
        let (retained, cost) = count(|| object.retain_on(&graph));
        retained.unwrap();
        cost.assert_calls(&[("cuGraphRetainUserObject", 1)]);
        drop(object);
        settle();
        assert_eq!(dropped.times.load(Ordering::SeqCst), 0, "the graph holds it");
        drop(graph);
        assert!(until(SOON, || dropped.times.load(Ordering::SeqCst) == 1));
        assert_eq!(live().of(Kind::UserObject), before);
    });
    settle();
}

#[test]
fn a_user_object_released_by_its_graph_lives_on_with_its_handle() {
    let context = setup();
    no_leaks(|| {
        let dropped = Arc::new(Dropped::default());
        let graph = GraphHandle::create(&context).unwrap();
        let object = UserObject::new(&context, Box::new(Payload(dropped.clone()))).unwrap();
        object.retain_on(&graph).unwrap();
        object.release_from(&graph).unwrap();
        drop(graph);
        settle();
        assert_eq!(dropped.times.load(Ordering::SeqCst), 0);
        drop(object);
        assert!(until(SOON, || dropped.times.load(Ordering::SeqCst) == 1));
    });
}

#[test]
fn its_destructor_only_hands_the_box_over() {
    let context = setup();
    no_leaks(|| {
        let (calls, allocations) = (calls_from_destructors(), allocations_in_destructors());
        let stream = context.stream().unwrap();
        let dropped: Vec<_> = (0..20).map(|_| Arc::new(Dropped::default())).collect();
        for dropped in &dropped {
            // The payload owns a buffer: its drop needs the driver, which the driver's own thread
            // may not call.
            let payload = (Payload(dropped.clone()), stream.zeros::<u32>(64).unwrap());
            drop(UserObject::new(&context, Box::new(payload)).unwrap());
        }
        assert!(until(SOON, || dropped.iter().all(|dropped| dropped.times.load(Ordering::SeqCst) == 1)));
        assert_eq!(calls_from_destructors(), calls);
        assert_eq!(allocations_in_destructors(), allocations);
        let here = std::thread::current().id();
        assert!(
            dropped.iter().all(|dropped| *dropped.on.lock().unwrap() != Some(here)),
            "not in the dropping thread"
        );
    });
}

#[test]
fn a_graph_handle_is_created_and_destroyed_by_one_call() {
    let context = setup();
    no_leaks(|| {
        let (graph, cost) = count(|| GraphHandle::create(&context).unwrap());
        cost.assert_calls(&[("cuGraphCreate", 1)]);
        let (clone, cost) = count(|| graph.clone());
        cost.assert_calls(&[]);
        assert_eq!(clone, graph);
        assert_eq!(graph.context(), &*context);
        drop(graph);
        assert!(cuda_tests::raw::nodes(clone.as_raw()).is_empty());
        let ((), cost) = count(|| drop(clone));
        assert_eq!(cost.calls_anywhere("cuGraphDestroy"), 1, "{cost}");
    });
}

/// Panics when it is dropped, with a value that panics when it is dropped, and so on.
struct Bomb(usize, Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
        if let Some(rest) = self.0.checked_sub(1) {
            std::panic::panic_any(Self(rest, self.1.clone()));
        }
    }
}

#[test]
fn an_owner_that_panics_in_its_drop_ends_nothing() {
    let context = setup();
    let (drops, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(Dropped::default()));
    drop(UserObject::new(&context, Box::new(Bomb(3, drops.clone()))).unwrap());
    assert!(until(SOON, || drops.load(Ordering::SeqCst) == 4));
    drop(UserObject::new(&context, Box::new(Payload(dropped.clone()))).unwrap());
    assert!(until(SOON, || dropped.times.load(Ordering::SeqCst) == 1), "the reaper goes on");
    settle();
}
