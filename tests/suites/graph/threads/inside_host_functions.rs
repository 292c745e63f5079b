//! Graphs used in a host function while another thread works on them.

use std::sync::mpsc::channel;
use std::thread;

use cuda_graph::{ContextExt, Error, InstantiateOptions};
use cuda_handles::{Error as HandleError, Owner, reaper};
use cuda_sys::CUresult;
use cuda_tests::{SOON, in_callback, no_leaks, setup, until};

fn is_refused<R: core::fmt::Debug>(result: Result<R, Error>) {
    let error = result.unwrap_err();
    let refusal = CUresult::CUDA_ERROR_NOT_PERMITTED;
    assert!(
        matches!(error, Error::Handles(HandleError::Driver { code, .. }) if code == refusal),
        "{error:?}"
    );
}

/// A drain makes the driver wait for the host function, and whoever uploads meanwhile waits for the
/// driver, with the graph's lock.
#[test]
fn nothing_about_a_graph_waits_in_a_host_function_for_who_has_its_lock() {
    let context = setup();
    no_leaks(|| {
        let (stream, uploads) = (context.stream().unwrap(), context.stream().unwrap());
        let (graph, idle) = (context.graph().unwrap(), context.graph().unwrap());
        let node = graph.root().empty().unwrap().named("asked");
        let child = idle.root().child(&context.graph().unwrap()).unwrap();
        drop(context.pinned_zeros::<u32>(1 << 20).unwrap());
        let (begin, begun) = channel::<()>();
        let (sender, receiver) = channel();
        let (inside, asked) = (graph.clone(), node.clone());
        in_callback(&stream, move || {
            let _ = begun.recv_timeout(SOON);
            let raw = (asked.describe().map(drop), asked.keep(Owner::other(0)), inside.as_raw().map(drop));
            let rest = (inside.parent().map(drop), inside.nodes().map(drop), child.set_graph(&inside));
            inside.keep(Owner::other(0));
            let asked = asked.named("renamed");
            let _ = sender.send((raw, rest, asked.name(), asked.is_removed()));
        });
        let draining = thread::spawn(reaper::drain);
        assert!(!until(SOON / 100, || draining.is_finished()));
        let working = graph.clone();
        let instantiating = thread::spawn(move || {
            working.instantiate_with(InstantiateOptions::new().upload_on(&uploads)).map(drop)
        });
        assert!(!until(SOON / 100, || instantiating.is_finished()));
        drop(begin);
        let (raw, rest, name, is_removed) = receiver.recv_timeout(SOON).expect("the host function waits");
        is_refused(raw.0);
        is_refused(raw.1);
        is_refused(raw.2);
        is_refused(rest.0);
        is_refused(rest.1);
        is_refused(rest.2);
        assert_eq!((&*name, is_removed), ("empty#0", false));
        assert!(draining.join().unwrap() > 0);
        instantiating.join().unwrap().unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(node.name(), "asked");
    });
}
