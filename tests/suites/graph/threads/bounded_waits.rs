//! Calls on a graph while another call on it hangs in the driver: they end with `Busy`.

use std::mem::forget;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cuda_graph::{ContextExt, Error, Graph, LoopError, Test};
use cuda_handles::{Error as HandleError, Owner, clones, reaper, set_patience};
use cuda_sys::Call;
use cuda_tests::{SOON, alone, ends_soon, hold, needs, no_leaks, setup, until};

#[track_caller]
fn is_busy<T>(outcome: Result<T, Error>, name: &str) {
    let error = outcome.err().expect("it is in use");
    let text = error.to_string();
    assert!(matches!(error, Error::Handles(HandleError::Busy { .. })), "{text}");
    assert!(text.contains(name) && text.contains("100ms"), "`{name}` is not in: {text}");
}

#[test]
fn a_graph_that_another_call_has_is_named() {
    let context = setup();
    set_patience(Duration::from_millis(100));
    let kept = Arc::new(());
    no_leaks(|| {
        let (graph, other) = (context.graph().unwrap(), context.graph().unwrap());
        let node = graph.root().empty().unwrap();
        let held = hold(Call::cuGraphInstantiateWithParams);
        let makes = graph.clone();
        let first = thread::spawn(move || makes.instantiate());
        assert!(until(SOON, || held.has_arrived()));
        let (asks, embeds, keeps, owner) = (graph.clone(), other.clone(), graph.clone(), kept.clone());
        ends_soon(move || {
            is_busy(asks.len(), "the graph");
            is_busy(asks.root().empty(), "the graph");
            is_busy(asks.instantiate(), "the graph");
            is_busy(embeds.root().child(&asks), "the graph");
            is_busy(node.remove(), "the graph");
            // An owner that cannot be entered is never dropped.
            keeps.keep(Owner::shared(owner));
        });
        drop(held);
        drop(first.join().unwrap().unwrap());
        assert_eq!([graph.len(), other.len()], [Ok(1), Ok(0)]);
    });
    assert_eq!(Arc::strong_count(&kept), 2);
    // For the search for leaks.
    // SAFETY: the reference is that which the graph could not take.
    unsafe { Arc::decrement_strong_count(Arc::as_ptr(&kept)) };
}

#[test]
fn a_forgotten_lock_of_clones_holds_up_no_graph_for_ever() {
    alone!();
    let context = setup();
    set_patience(Duration::from_millis(100));
    let (graph, other): (Graph, Graph) = (context.graph().unwrap(), context.graph().unwrap());
    let node = graph.root().empty().unwrap();
    let lock = context.clone();
    thread::spawn(move || forget(clones::alone(&lock).unwrap())).join().unwrap();
    ends_soon(move || {
        is_busy(graph.clone_graph(), "clones::alone");
        is_busy(other.root().child(&graph), "clones::alone");
        is_busy(node.remove(), "clones::alone");
        // Neither drops nor what needs no clone.
        drop(graph.instantiate().unwrap());
        drop((node, graph, other));
        reaper::drain();
    });
    assert!(reaper::pending() >= 2, "the reaper tries again");
}

/// A user may call anything while holding the guard. It is in no order of locks.
#[test]
fn the_thread_that_keeps_clones_off_is_answered() {
    let context = setup();
    set_patience(Duration::from_millis(100));
    no_leaks(|| {
        let (graph, dropped) = (context.graph().unwrap(), context.graph().unwrap());
        let node = graph.root().empty().unwrap();
        let guard = clones::alone(&context).unwrap();
        assert_eq!(graph.len(), Ok(1));
        is_busy(graph.clone_graph(), "`clones::alone`");
        is_busy(node.remove(), "`clones::alone`");
        let error = clones::alone(&context).map(drop).unwrap_err();
        assert!(matches!(error, HandleError::Busy { .. }), "{error}");
        drop(dropped);
        drop(guard);
        node.remove().unwrap();
        assert!(until(SOON, || reaper::pending() == 0));
    });
}

/// A loop that could not be removed, since the graph was in use, would have no end.
#[test]
fn a_loop_that_cannot_be_removed_in_time_breaks_its_graph() {
    let context = setup();
    needs!(Conditionals);
    set_patience(Duration::from_millis(100));
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let number = stream.zeros::<u32>(1).unwrap();
        let graph = context.graph().unwrap();
        let mut using = None;
        let built = graph.root().while_loop(Test::nonzero(&number), |_| {
            let (held, graph) = (hold(Call::cuGraphInstantiateWithParams), graph.clone());
            let first = thread::spawn(move || graph.edges().and_then(|_| graph.instantiate()));
            assert!(until(SOON, || held.has_arrived()));
            using = Some((held, first));
            Err::<(), _>(Error::Loop(LoopError::NotFilled))
        });
        let error = built.map(drop).unwrap_err();
        assert!(matches!(error, Error::Broken(_)), "{error}");
        let (held, first) = using.unwrap();
        drop(held);
        drop(first.join().unwrap());
        assert_eq!(graph.instantiate().map(drop).unwrap_err(), error);
    });
}
