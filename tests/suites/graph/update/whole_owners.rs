//! What an executable owns before and after a whole update, and what its launches wait for.

use cuda_graph::{ContextExt, Graph, MemsetNode};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, Error as HandleError, Owner};
use cuda_launch::per;
use cuda_tests::{Gate, Kind, SOON, count, live, no_leaks, setup, until};

use super::whole::update;
use crate::capture::{N, add_to};
use crate::common::gone::{flag, soon};

/// A graph of one fill that keeps an owner.
fn filling(context: &Context, to: &Buffer<u32>, value: u32, owner: Owner) -> (Graph, MemsetNode) {
    let graph = context.graph().unwrap();
    let fill = graph.root().fill(to, value).unwrap();
    fill.keep(owner).unwrap();
    (graph, fill)
}

#[test]
fn an_update_exchanges_everything_that_the_executable_owns() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        for launches in [0, 1] {
            let ((old, old_is_gone), (new, new_is_gone), (last, last_is_gone)) = (flag(), flag(), flag());
            let (graph, fill) = filling(&context, &numbers, 1, old);
            let mut exec = graph.instantiate().unwrap();
            // From now on the executable alone owns it.
            fill.remove().unwrap();
            graph.root().fill(&numbers, 1).unwrap();
            (0..launches).for_each(|_| exec.launch(&stream).unwrap());
            stream.synchronize_blocking().unwrap();
            assert!(!old_is_gone());
            let (other, fill) = filling(&context, &numbers, 2, new);
            update(&mut exec, &other);
            assert!(soon(&old_is_gone));
            // The graph holds nothing for the executable.
            fill.remove().unwrap();
            assert!(!new_is_gone());
            let (other, fill) = filling(&context, &numbers, 3, last);
            drop(fill);
            update(&mut exec, &other);
            assert!(soon(&new_is_gone));
            drop(other);
            exec.launch(&stream).unwrap();
            assert_eq!(numbers.read_blocking(&stream).unwrap(), [3; N]);
            assert!(!last_is_gone());
            drop(exec);
            assert!(soon(&last_is_gone));
        }
    });
}

#[test]
fn runs_in_flight_keep_what_they_had() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let (one, other) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let build = |buffer: &Buffer<u32>, owner: Owner| {
            let graph = context.graph().unwrap();
            let node = graph.root().launch(&add, per(1, 1), (1, buffer)).unwrap();
            node.keep(owner).unwrap();
            (graph, node)
        };
        for is_lent in [false, true] {
            let ((base, base_is_gone), (unused, _)) = (flag(), flag());
            let (graph, node) = build(&one, base);
            let mut exec = graph.instantiate().unwrap();
            if is_lent {
                // Where it runs is unknown from now on.
                assert!(!exec.as_raw().is_null());
            } else {
                // What a node update brings is the executable's, too.
                let brought = stream.zeros::<u32>(N).unwrap();
                exec.node(&node).set(&add, per(1, 1), (1, &brought)).unwrap();
                exec.node(&node).set(&add, per(1, 1), (1, &one)).unwrap();
            }
            node.remove().unwrap();
            let gate = Gate::close(&stream);
            exec.launch(&stream).unwrap();
            let (new, _node) = build(&other, unused);
            update(&mut exec, &new);
            exec.launch(&stream).unwrap();
            assert!(!base_is_gone());
            gate.open();
            stream.synchronize_blocking().unwrap();
            assert!(soon(&base_is_gone));
        }
        assert_eq!(one.read_blocking(&stream).unwrap()[0], 2);
        assert_eq!(other.read_blocking(&stream).unwrap()[0], 2);
    });
}

#[test]
fn many_updates_are_flat_in_memory() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&numbers, 0).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let before = live();
        for round in 0..300 {
            let buffer = stream.zeros::<u32>(N).unwrap();
            let new = context.graph().unwrap();
            new.root().fill(&buffer, round).unwrap();
            update(&mut exec, &new);
            exec.launch(&stream).unwrap();
            if round % 50 == 49 {
                assert_eq!(buffer.read_blocking(&stream).unwrap(), [round; N]);
                drop((buffer, new));
                let flat = until(SOON, || {
                    cuda_handles::reaper::drain();
                    let more = live().since(&before);
                    more.of(Kind::Allocation) <= 1
                        && more.of(Kind::Graph) <= 1
                        && more.of(Kind::UserObject) <= 1
                });
                assert!(flat, "after {round}: {}", live().since(&before));
            }
        }
    });
}

#[test]
fn the_next_launch_waits_for_the_homes_of_new_memory() {
    let context = setup();
    no_leaks(|| {
        let (home, stream) = (context.stream().unwrap(), context.stream().unwrap());
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&numbers, 1).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let gate = Gate::close(&home);
        let late = home.zeros::<u32>(N).unwrap();
        let new = context.graph().unwrap();
        new.root().fill(&late, 2).unwrap();
        update(&mut exec, &new);
        let (launched, cost) = count(|| exec.launch(&stream));
        launched.unwrap();
        assert_eq!(cost.calls("cuStreamWaitEvent"), 1, "{cost}");
        assert!(!stream.query().unwrap());
        gate.open();
        assert_eq!(late.read_blocking(&stream).unwrap(), [2; N]);
        let (launched, cost) = count(|| exec.launch(&stream));
        launched.unwrap();
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
    });
}

#[test]
fn launches_record_the_events_of_the_new_graph() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (one, other) = (context.event().unwrap(), context.event().unwrap());
        let graph = context.graph().unwrap();
        let node = graph.root().record(&one).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let new = context.graph().unwrap();
        let new_node = new.root().record(&other).unwrap();
        update(&mut exec, &new);
        // A capture records the events last; a launch takes them out of it.
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        stream.record(&one).unwrap();
        stream.record(&other).unwrap();
        drop(capture);
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        // The driver tells the event that it means now.
        assert_ne!(other.query(), Err(HandleError::CapturedEvent));
        assert_eq!(one.query(), Err(HandleError::CapturedEvent));
        // Also of an event that a node update brings, by the nodes of either graph.
        for node in [&node, &new_node] {
            let third = context.event().unwrap();
            exec.node(node).set_event(&third).unwrap();
            exec.launch(&stream).unwrap();
            stream.synchronize_blocking().unwrap();
            assert!(third.query().unwrap());
        }
    });
}
