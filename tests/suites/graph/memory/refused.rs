//! Operations refused for graphs with memory nodes, and for their memory.

use cuda_graph::{
    AllocOptions, AllocPlace, ChildGraphNode, ConditionError, ContextExt, EdgeKind, Error, ExecError,
    InstantiateOptions, LoopError, MemoryError, NodeError, NodeKind,
};
use cuda_handles::{Batch, Copy2d, Error as HandleError};
use cuda_launch::{Launch, TypedKernel, params, per};
use cuda_sys::CUresult;
use cuda_tests::{SOON, alone, is_soft, needs, until};

use super::{COUNT, N, increment, traceless};
use crate::rollback::broken::assert_broken;

fn foreign(node: &str) -> Error {
    Error::Memory(MemoryError::ForeignMemory { node: node.into() })
}

#[test]
fn memory_is_for_nodes_of_its_own_graph() {
    traceless(|context, stream| {
        let kernel = increment::load(context).unwrap();
        let own = stream.zeros::<u32>(N).unwrap();
        let (graph, other) = (context.graph().unwrap(), context.graph().unwrap());
        let (_, memory) = graph.root().alloc::<u32>(N).unwrap();
        let launch = other.root().launch(&kernel, per(N, 32), (&own, COUNT)).unwrap();
        let special = per(N, 32).priority(-1);
        let fill = other.root().fill(&own, 1).unwrap();
        let copy = other.root().copy(own.slice(..32).unwrap(), own.slice(32..).unwrap()).unwrap();
        let before = other.len().unwrap();
        let at = other.root();
        // SAFETY: nothing is launched.
        let untyped = unsafe { at.launch_untyped(kernel.kernel(), per(N, 32), params![&memory, COUNT]) };
        let refusals = [
            (at.launch(&kernel, per(N, 32), (&memory, COUNT)).map(drop), "increment"),
            (at.launch(&kernel, special, (&memory, COUNT)).map(drop), "increment"),
            (untyped.map(drop), "increment"),
            (launch.set(&kernel, per(N, 32), (&memory, COUNT)), "increment"),
            (launch.set(&kernel, special, (&memory, COUNT)), "increment"),
            (at.fill(&memory, 1).map(drop), "memset"),
            (at.fill_2d(&memory, 8, [4, 4], 1).map(drop), "memset"),
            (fill.set(&memory, 1), "memset"),
            (at.copy(&memory, &own).map(drop), "memcpy"),
            (at.copy(&own, &memory).map(drop), "memcpy"),
            (copy.set(&own, &memory), "memcpy"),
            (at.free(&memory).map(drop), "free"),
            (other.free(&memory).map(drop), "free"),
        ];
        for (place, (refusal, node)) in refusals.into_iter().enumerate() {
            assert_eq!(refusal.unwrap_err(), foreign(node), "{place}");
        }
        assert_eq!(other.len().unwrap(), before);
        other.instantiate().unwrap();
        // Nor for a graph around its own, or for its own when that is gone.
        drop(graph);
        assert_eq!(at.fill(&memory, 1).unwrap_err(), foreign("memset"));
    });
}

#[test]
fn memory_is_not_for_streams() {
    traceless(|context, stream| {
        let kernel = increment::load(context).unwrap();
        let own = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let (_, memory) = graph.root().alloc::<u32>(N).unwrap();
        let slice = memory.as_slice().as_operand();
        // SAFETY: refused before the driver sees it.
        let launched = unsafe { kernel.kernel().launch(stream, per(N, 32), &params![&memory, COUNT]) };
        assert_eq!(launched.unwrap_err(), cuda_launch::Error::Handles(HandleError::MemoryOfGraph));
        let layer = Copy2d {
            source: slice,
            source_pitch: 8,
            destination: own.as_slice(),
            destination_pitch: 8,
            width: 4,
            height: 4,
        };
        let refusals = [
            stream.fill(slice, 1),
            stream.copy(slice, &own),
            stream.copy(&own, slice),
            stream.copy_2d(layer),
            slice.read_blocking(stream).map(drop),
            slice.write_blocking(stream, &[0; N]),
        ];
        for (place, refusal) in refusals.into_iter().enumerate() {
            assert_eq!(refusal.unwrap_err(), HandleError::MemoryOfGraph, "{place}");
        }
        let mut batch = Batch::new();
        batch.write(slice, 0, 1).unwrap();
        assert!(matches!(stream.batch(&batch), Err(HandleError::BatchMemory { .. })));
        assert!(matches!(graph.root().batch(&batch), Err(Error::Handles(HandleError::BatchMemory { .. }))));
        assert!(stream.query().unwrap() || !stream.query().unwrap());
    });
}

#[test]
fn nothing_is_allocated_of_no_elements_or_too_many() {
    traceless(|context, _| {
        let graph = context.graph().unwrap();
        let at = graph.root();
        assert_eq!(
            at.alloc::<u32>(0).unwrap_err(),
            Error::Node(NodeError::NoElements { what: "allocation" })
        );
        assert_eq!(
            at.alloc::<[u8; 0]>(7).unwrap_err(),
            Error::Node(NodeError::NoElements { what: "allocation" })
        );
        let too_large = HandleError::TooLarge { len: usize::MAX / 2, size: 4 };
        assert_eq!(at.alloc::<u32>(usize::MAX / 2).unwrap_err(), Error::Handles(too_large));
        assert!(graph.is_empty().unwrap());
        let (alloc, _) = at.alloc::<u8>(13).unwrap();
        assert!(matches!(alloc.memory::<u32>(), Err(Error::Handles(HandleError::Cast { .. }))));
    });
}

/// A launch of that would keep all memory of the device until the process ends.
#[test]
fn no_node_allocates_more_than_its_device_has() {
    traceless(|context, _| {
        let graph = context.graph().unwrap();
        let (here, total) = (context.device(), context.device().total_memory().unwrap());
        for bytes in [total + 1, 1 << 40] {
            let expected =
                Error::Memory(MemoryError::LargerThanDevice { bytes, device: here.ordinal(), total });
            for place in [AllocPlace::Here, AllocPlace::Device(here)] {
                let options = AllocOptions::new().on(place);
                assert_eq!(graph.root().alloc_with::<u8>(bytes, options).unwrap_err(), expected);
            }
            assert!(graph.is_empty().unwrap());
        }
        // All that there is would perhaps fit.
        graph.root().alloc::<u8>(total).unwrap();
    });
}

#[test]
fn the_memory_of_each_device_counts_by_itself() {
    alone!("CUDA_SOFT_DEVICES" = "2", "CUDA_TEST_DRIVER" = "soft");
    traceless(|context, _| {
        let graph = context.graph().unwrap();
        for device in cuda_handles::Device::all().unwrap() {
            let (total, ordinal) = (device.total_memory().unwrap(), device.ordinal());
            let options = AllocOptions::new().on(AllocPlace::Device(device));
            let error = graph.root().alloc_with::<u8>(total + 1, options).unwrap_err();
            assert_eq!(
                error,
                Error::Memory(MemoryError::LargerThanDevice { bytes: total + 1, device: ordinal, total })
            );
        }
    });
}

#[test]
fn memory_is_freed_once() {
    traceless(|context, _| {
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        let free = alloc.then().free(&memory).unwrap().named("first");
        let error =
            Error::Memory(MemoryError::FreedTwice { memory: alloc.name().into(), free: "first".into() });
        assert_eq!(alloc.then().free(&memory).unwrap_err(), error);
        assert_eq!(graph.free(&memory).unwrap_err(), error);
        // What is allocated afterwards has its address, and a life of its own.
        let (next, again) = free.then().alloc::<u32>(N).unwrap();
        assert_eq!(alloc.then().free(&memory).unwrap_err(), error);
        let last = next.then().free(&again).unwrap();
        assert_eq!((free.allocation().unwrap(), last.allocation().unwrap()), (Some(alloc), Some(next)));
        graph.instantiate().unwrap();
    });
}

#[test]
fn embedded_graphs_and_bodies_take_no_memory_nodes() {
    traceless(|context, _| {
        needs!(Conditionals);
        let graph = context.graph().unwrap();
        let (_, memory) = graph.root().alloc::<u32>(N).unwrap();
        let inner = graph.root().child(&context.graph().unwrap()).unwrap().embedded().unwrap();
        let embedded = |kind| Error::Memory(MemoryError::MemoryEmbedded { kind });
        assert_eq!(inner.root().alloc::<u32>(N).unwrap_err(), embedded(NodeKind::Alloc));
        assert_eq!(inner.root().free(&memory).unwrap_err(), embedded(NodeKind::Free));
        assert_eq!(inner.free(&memory).unwrap_err(), embedded(NodeKind::Free));
        let condition = graph.condition_with_default(0).unwrap();
        let branch = graph.root().if_node(&condition).unwrap().named("branch");
        let body = branch.body().unwrap();
        let in_body = body.len().unwrap();
        let not_in_body =
            |kind| Error::Condition(ConditionError::NotInBody { kind, conditional: "branch".into() });
        assert_eq!(body.root().alloc::<u32>(N).unwrap_err(), not_in_body(NodeKind::Alloc));
        assert_eq!(body.root().free(&memory).unwrap_err(), not_in_body(NodeKind::Free));
        let inside = body.root().child(&context.graph().unwrap());
        if let Ok(inside) = inside {
            let error = inside.embedded().unwrap().root().alloc::<u32>(N).unwrap_err();
            assert_eq!(error, not_in_body(NodeKind::Alloc));
        }
        if crate::common::chains::moves() {
            let source = context.graph().unwrap();
            source.root().alloc::<u32>(N).unwrap();
            assert_eq!(body.root().child_moved(source).unwrap_err(), not_in_body(NodeKind::Alloc));
        }
        // A child graph at most.
        assert_eq!((inner.len().unwrap(), body.len().unwrap() <= in_body + 1), (0, true));
    });
}

#[test]
fn a_graph_with_memory_is_not_copied() {
    traceless(|context, _| {
        for frees in [false, true] {
            let (graph, outer) = (context.graph().unwrap(), context.graph().unwrap());
            let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
            let inner = graph.root().child(&context.graph().unwrap()).unwrap().embedded().unwrap();
            inner.clone_graph().unwrap();
            inner.root().fill(&memory, 1).unwrap();
            if frees {
                alloc.then().free(&memory).unwrap();
            }
            assert_eq!(graph.clone_graph().unwrap_err(), Error::Memory(MemoryError::HasMemory));
            assert_eq!(outer.root().child(&graph).unwrap_err(), Error::Memory(MemoryError::HasMemory));
            let child = outer.root().child(&context.graph().unwrap()).unwrap();
            assert_eq!(child.set_graph(&graph).unwrap_err(), Error::Memory(MemoryError::HasMemory));
            // Nor an embedded one with nodes that use it.
            assert_eq!(inner.clone_graph().unwrap_err(), Error::Memory(MemoryError::HasMemory));
            assert_eq!((outer.len().unwrap(), graph.len().unwrap()), (1, 2 + usize::from(frees)));
        }
    });
}

#[test]
fn nothing_is_taken_out_of_a_graph_with_memory() {
    traceless(|context, _| {
        let graph = context.graph().unwrap();
        let [first, second] = [graph.root().empty().unwrap(), graph.root().empty().unwrap()];
        let third = second.then().empty().unwrap();
        let gone = graph.root().empty().unwrap();
        gone.remove().unwrap();
        let (alloc, memory) = second.then().alloc::<u32>(N).unwrap();
        let free = alloc.then().free(&memory).unwrap();
        let keeps = |what| Error::Memory(MemoryError::KeepsAll { what });
        for node in [&*first, &*alloc, &*free, &*third] {
            assert_eq!(node.remove().unwrap_err(), keeps("nodes"));
        }
        assert_eq!(graph.remove_nodes(&[&first, &second]).unwrap_err(), keeps("nodes"));
        assert_eq!(alloc.remove_bridging().unwrap_err(), keeps("edges"));
        assert_eq!(graph.remove_edges(&[(&second, &third)]).unwrap_err(), keeps("edges"));
        assert_eq!(third.set_in_edges(&[]).unwrap_err(), keeps("edges"));
        let between = graph.between(&second, &third).unwrap();
        assert_eq!(between.empty().unwrap_err(), keeps("edges"));
        assert_eq!(graph.len().unwrap(), 5);
        // Nodes and edges still come.
        graph.add_edges(&[(&first, &third, EdgeKind::Full)]).unwrap();
        third.then().empty().unwrap();
        graph.instantiate().unwrap();
    });
}

#[test]
fn a_second_executable_is_refused_with_the_reason() {
    traceless(|context, stream| {
        let graph = context.graph().unwrap();
        graph.root().alloc::<u32>(N).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let error = graph.instantiate().unwrap_err();
        assert_eq!(error, Error::Exec(ExecError::OneExecutable { of: "allocation or free nodes" }));
        assert!(error.to_string().contains("with allocation or free nodes has one executable"), "{error}");
        exec.launch(stream).unwrap();
        drop(exec);
        graph.instantiate().unwrap().launch(stream).unwrap();
        // One of other code.
        let others = crate::common::other::instantiate(context, graph.lend().unwrap());
        assert_eq!(
            graph.instantiate().unwrap_err(),
            Error::Exec(ExecError::OneExecutable { of: "allocation or free nodes" })
        );
        crate::common::other::destroy_exec(others);
        let error = graph.instantiate_with(InstantiateOptions::new().device_launch()).unwrap_err();
        assert!(matches!(error, Error::Exec(ExecError::DeviceLaunch { .. })), "{error}");
    });
}

#[test]
fn a_place_without_memory_of_graphs_is_told() {
    traceless(|context, _| {
        let graph = context.graph().unwrap();
        for place in [AllocPlace::Host, AllocPlace::Managed] {
            match graph.root().alloc_with::<u32>(N, AllocOptions::new().on(place)) {
                Ok((node, _)) => {
                    // The software driver has none on the host.
                    assert!(place == AllocPlace::Managed || !is_soft());
                    assert_eq!(node.options().unwrap().place(), place);
                }
                Err(Error::Memory(MemoryError::NoMemoryThere { place: told, .. })) => assert_eq!(told, place),
                Err(Error::TooOld { .. }) if place == AllocPlace::Managed => {}
                Err(other) => panic!("{other}"),
            }
        }
    });
}

#[test]
fn a_driver_that_is_too_old_for_managed_memory_says_so() {
    alone!("CUDA_SOFT_VERSION" = "12.9", "CUDA_TEST_DRIVER" = "soft");
    traceless(|context, _| {
        let options = AllocOptions::new().on(AllocPlace::Managed);
        let error = context.graph().unwrap().root().alloc_with::<u32>(N, options).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("managed memory of a graph needs a CUDA driver of version 13.0 or newer"),
            "{error}"
        );
    });
}

#[test]
fn the_oldest_driver_has_memory_of_graphs() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    traceless(|context, stream| {
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        let fill = alloc.then().fill(&memory, 5).unwrap();
        graph.root().copy(&memory, &stream.zeros::<u32>(N).unwrap()).unwrap();
        assert!(matches!(graph.instantiate(), Err(Error::Memory(MemoryError::MemoryOrder { .. }))));
        let graph = context.graph().unwrap();
        assert_eq!(graph.root().fill(&memory, 5).unwrap_err(), foreign("memset"));
        drop(fill);
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        alloc.then().fill(&memory, 5).unwrap();
        let mut exec = { graph }.instantiate().unwrap();
        let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
        assert_eq!(output.read_blocking(stream).unwrap(), [5; N]);
    });
}

/// The driver removes no node of a graph with memory nodes, so that attributes are refused before
/// the node is there.
#[test]
fn a_refused_attribute_leaves_a_graph_with_memory_as_it_was() {
    traceless(|context, stream| {
        let kernel = increment::load(context).unwrap();
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        let fill = alloc.then().fill(&memory, 5).unwrap();
        let state = || (graph.nodes().unwrap(), graph.edges().unwrap());
        let before = state();
        let add = || {
            let at = fill.then();
            at.launch(&kernel, per(N, 32).priority(-1).cooperative(), (&memory, COUNT))
        };
        let attribute = cuda_sys::Call::cuGraphKernelNodeSetAttribute;
        for (call, nth) in [(attribute, 1), (attribute, 2), (cuda_sys::Call::cuGraphAddNode, 1)] {
            let failing = cuda_tests::fail(call, nth, CUresult::CUDA_ERROR_INVALID_VALUE);
            let error = add().unwrap_err();
            assert!(failing.hit());
            drop(failing);
            assert!(matches!(error, Error::Handles(_)), "{error}");
            assert_eq!(state(), before, "{error}");
        }
        // It is the same node as in a graph without memory, and comes once.
        let node = add().unwrap();
        assert_eq!(node.config().unwrap(), per(N, 32).priority(-1).cooperative());
        assert_eq!(graph.len().unwrap(), 3);
        let mut exec = graph.instantiate().unwrap();
        let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
        assert_eq!(output.read_blocking(stream).unwrap(), [6; N]);
    });
}

/// Refused only where it counts, it can be taken back no more.
#[test]
fn an_attribute_refused_by_the_node_itself_breaks_a_graph_with_memory() {
    traceless(|context, _| {
        let kernel = increment::load(context).unwrap();
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        let failing = cuda_tests::fail(
            cuda_sys::Call::cuGraphKernelNodeSetAttribute,
            2,
            CUresult::CUDA_ERROR_INVALID_VALUE,
        );
        let error =
            alloc.then().launch(&kernel, per(N, 32).priority(-1), (&memory, COUNT)).map(drop).unwrap_err();
        assert!(failing.hit());
        drop(failing);
        assert_broken(&graph, &error);
    });
}

/// The driver removes no memory node, so that one whose edges are refused stays.
#[test]
fn a_memory_node_whose_edges_are_refused_breaks_the_graph() {
    traceless(|context, stream| {
        let failing =
            || cuda_tests::fail(cuda_sys::Call::cuGraphAddDependencies, 1, CUresult::CUDA_ERROR_UNKNOWN);
        let graph = context.graph().unwrap();
        let last = graph.root().empty().unwrap();
        let mut exec = graph.instantiate().unwrap();
        let failure = failing();
        let error = graph.root().before([&last]).unwrap().alloc::<u32>(N).unwrap_err();
        drop(failure);
        assert_broken(&graph, &error);
        exec.launch(stream).unwrap();
        stream.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let last = graph.root().empty().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        let failure = failing();
        let error = alloc.then().before([&last]).unwrap().free(&memory).unwrap_err();
        drop(failure);
        assert_broken(&graph, &error);
        assert_eq!(alloc.name(), "alloc#1");
    });
}

#[test]
fn a_graph_with_memory_and_an_executable_is_not_moved() {
    traceless(|context, stream| {
        needs!(MovedGraphs);
        let (source, graph) = (context.graph().unwrap(), context.graph().unwrap());
        let (_, memory) = source.root().alloc::<u32>(N).unwrap();
        let mut before = source.instantiate().unwrap();
        let error = graph.root().child_moved(source.clone()).unwrap_err();
        assert_eq!(error, Error::Exec(ExecError::OneExecutable { of: "allocation or free nodes" }));
        before.launch(stream).unwrap();
        drop(before);
        graph.root().child_moved(source).unwrap();
        let mut exec = graph.instantiate().unwrap();
        drop(exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap());
    });
}

#[test]
fn an_executable_that_could_not_be_ended_yet_does_not_keep_its_graph_from_being_moved() {
    traceless(|context, _| {
        needs!(MovedGraphs);
        let (source, graph) = (context.graph().unwrap(), context.graph().unwrap());
        source.root().alloc::<u32>(N).unwrap();
        let exec = source.instantiate().unwrap();
        let code = CUresult::CUDA_ERROR_NOT_PERMITTED;
        // Neither here nor by the reaper at once.
        let refused = [(); 2].map(|()| cuda_tests::fail(cuda_sys::Call::cuGraphExecDestroy, 1, code));
        drop(exec);
        assert!(until(SOON, || refused.iter().all(cuda_tests::Injection::hit)));
        graph.root().child_moved(source).unwrap();
    });
}

#[test]
fn a_graph_with_memory_is_not_taken_out_of_its_node() {
    traceless(|context, stream| {
        needs!(MovedGraphs);
        let (source, graph) = (context.graph().unwrap(), context.graph().unwrap());
        let out = stream.zeros::<u32>(N).unwrap();
        let outer = source.root().child(&context.graph().unwrap()).unwrap();
        let (alloc, memory) = source.root().alloc::<u32>(N).unwrap();
        alloc.then().fill(&memory, 5).unwrap();
        let beside = graph.root().child(&context.graph().unwrap()).unwrap();
        let child = graph.root().child_moved(source).unwrap();
        child.then().copy(&memory, &out).unwrap();
        let inner = child.embedded().unwrap().find_clone_of(&outer).unwrap();
        let inner = ChildGraphNode::try_from(inner).unwrap();
        let plain = context.graph().unwrap();
        for node in [&child, &inner, &beside] {
            assert_eq!(
                node.set_graph(&plain).unwrap_err(),
                Error::Memory(MemoryError::KeepsAll { what: "graph" })
            );
        }
        let mut exec = graph.instantiate().unwrap();
        drop(exec.launch_with_outputs(stream).unwrap());
        assert_eq!(out.read_blocking(stream).unwrap(), [5; N]);
    });
}

#[test]
fn graphs_in_nodes_are_replaced_where_the_graph_around_has_no_memory_nodes() {
    traceless(|context, stream| {
        let (graph, plain) = (context.graph().unwrap(), context.graph().unwrap());
        let out = stream.zeros::<u32>(N).unwrap();
        plain.root().fill(&out, 1).unwrap();
        let middle = context.graph().unwrap();
        middle.root().child(&context.graph().unwrap()).unwrap();
        let outer = graph.root().child(&middle).unwrap();
        let (_, memory) = graph.root().alloc::<u32>(N).unwrap();
        let inner = outer.embedded().unwrap().children().unwrap().remove(0);
        assert_eq!(
            outer.set_graph(&plain).unwrap_err(),
            Error::Memory(MemoryError::KeepsAll { what: "graph" })
        );
        inner.set_graph(&plain).unwrap();
        graph.free(&memory).unwrap();
        assert_eq!(
            outer.set_graph(&middle).unwrap_err(),
            Error::Memory(MemoryError::KeepsAll { what: "graph" })
        );
        inner.set_graph(&plain).unwrap();
        let mut exec = { graph }.instantiate().unwrap();
        exec.launch(stream).unwrap();
        assert_eq!(out.read_blocking(stream).unwrap(), [1; N]);
    });
}

/// The driver removes no node of a graph with memory nodes.
#[test]
fn a_loop_whose_closure_fails_breaks_a_graph_with_memory() {
    traceless(|context, stream| {
        let number = stream.upload(&[1_u32]).unwrap();
        for panics in [false, true] {
            let graph = context.graph().unwrap();
            let (_, memory) = graph.root().alloc::<u32>(N).unwrap();
            let filled = std::panic::AssertUnwindSafe(|| {
                graph.root().while_loop(cuda_graph::Test::nonzero(&number), |body| {
                    assert!(!panics, "as asked");
                    body.root().fill(&memory, 1).map(drop)?;
                    Err::<(), Error>(Error::Loop(LoopError::NothingToTest))
                })
            });
            let error = match std::panic::catch_unwind(filled) {
                Ok(outcome) => outcome.map(drop).unwrap_err(),
                Err(_) => graph.len().unwrap_err(),
            };
            let Error::Broken(broken) = &error else { panic!("{error}") };
            assert_eq!(broken.cause, Error::Loop(LoopError::NotFilled));
            assert!(matches!(broken.undo, Error::Memory(MemoryError::KeepsAll { .. })), "{error}");
            assert_broken(&graph, &error);
            let host = cuda_graph::Fallback::HostLoopAlways;
            let host = graph.instantiate_with_fallback(host, InstantiateOptions::new()).unwrap_err();
            assert_eq!(host, error);
        }
    });
}

/// A loop or a branch takes several nodes, of which the driver would remove none again.
#[test]
fn a_position_that_a_branch_cannot_have_breaks_no_graph_with_memory() {
    traceless(|context, stream| {
        needs!(Conditionals);
        let graph = context.graph().unwrap();
        let number = stream.zeros::<u32>(1).unwrap();
        let (first, memory) = graph.root().alloc::<u32>(N).unwrap();
        let last = first.then().fill(&memory, 5).unwrap();
        let test = || cuda_graph::Test::nonzero(&number);
        let branch = |frontier: &cuda_graph::Frontier<'_>| {
            frontier.if_then(test(), |_| Ok::<_, Error>(())).map(drop).unwrap_err()
        };
        let error = branch(&graph.between(&first, &last).unwrap());
        assert_eq!(error, Error::Memory(MemoryError::KeepsAll { what: "edges" }));
        let error = branch(&last.then().before([&*first]).unwrap());
        assert!(matches!(error, Error::Edge(cuda_graph::EdgeError::Cycle { .. })), "{error}");
        assert_eq!(graph.len(), Ok(2));
        last.then().if_then(test(), |_| Ok::<_, Error>(())).unwrap();
    });
}
