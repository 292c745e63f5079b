//! Calls on a graph while another call on it hangs in the driver: they end with `Busy`.

use std::mem::forget;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cuda_graph::{ContextExt, Error, Graph};
use cuda_handles::{Error as HandleError, Owner, clones, reaper, set_patience};
use cuda_sys::Call;
use cuda_tests::{SOON, alone, ends_soon, hold, no_leaks, setup, until};

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
