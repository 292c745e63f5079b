//! Adopted graphs, and the owners of nodes that are added to them.

use cuda_graph::{
    ContextExt, EdgeKind, Graph, InstantiateOptions, KernelNode, MemsetNode, NodeAttributeKind, NodeKind,
};
use cuda_handles::{GraphHandle, Owner};
use cuda_launch::{MemorySyncDomain, params, per};
use cuda_sys::{CUgraph, CUresult, Call};
use cuda_tests::{SMALL, count, fail, kernel, needs, no_leaks, raw, settle, setup};

use crate::common::chains::Bench;
use crate::common::gone::{allocations, flag, soon};
use crate::common::other;
use crate::interop::lent::counter;

const N: usize = 64;

/// Destroys a graph of other code when it goes.
struct Destroys(usize);

impl Drop for Destroys {
    fn drop(&mut self) {
        other::destroy(core::ptr::with_exposed_provenance_mut(self.0));
    }
}

#[test]
fn what_is_added_to_an_adopted_graph_lives_as_long_as_that_and_all_that_is_made_of_it() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let out = stream.zeros::<u32>(N).unwrap();
        let before = allocations();
        let foreign = other::graph();
        let exec = {
            // SAFETY: the graph lives longer than the handles.
            let graph = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
            counter(&graph, &bench.increment, stream, &out);
            other::instantiate(&context, foreign)
        };
        settle();
        assert_eq!(allocations(), before + 1);
        drop((0..16).map(|_| stream.zeros::<u32>(N).unwrap()).collect::<Vec<_>>());
        // SAFETY: as above.
        let again = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
        let mut of_again = again.instantiate().unwrap();
        drop(again);
        for expected in [1, 3] {
            other::launch(exec, stream);
            assert_eq!(out.read_blocking(stream).unwrap(), [expected; N]);
            of_again.launch(stream).unwrap();
            assert_eq!(out.read_blocking(stream).unwrap(), [expected + 1; N]);
        }
        other::destroy(foreign);
        drop(of_again);
        settle();
        assert_eq!(allocations(), before + 1, "an executable of other code has it");
        other::destroy_exec(exec);
        assert!(soon(&|| allocations() == before));
    });
}

#[test]
fn each_way_of_giving_a_node_of_an_adopted_graph_something_keeps_it() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let mine = context.graph().unwrap();
        mine.root().fill(&stream.zeros::<u32>(N).unwrap(), 7).unwrap();
        mine.root().child(&context.graph().unwrap()).unwrap();
        bench.step(&mine.root());
        let ways: [fn(&Bench, &Graph, &cuda_handles::Buffer<u32>); 5] = [
            |_, graph, buffer| drop(graph.root().fill(buffer, 3).unwrap()),
            |_, graph, buffer| {
                MemsetNode::try_from(graph.nodes().unwrap().remove(0)).unwrap().set(buffer, 4).unwrap();
            },
            |bench, graph, buffer| {
                let source = graph.context().graph().unwrap();
                source.root().fill(buffer, 5).unwrap();
                let child = graph.children().unwrap().remove(0);
                child.set_graph(&source).unwrap();
                let _ = bench;
            },
            |bench, graph, buffer| {
                let node = cuda_graph::KernelNode::try_from(graph.nodes().unwrap().remove(2)).unwrap();
                let config = per(N, 64).priority(-1);
                // SAFETY: the arguments are the kernel's, and the count is the buffer's.
                unsafe { node.set_untyped(&bench.increment, config, params![buffer, N as u32]) }.unwrap();
            },
            |_, graph, buffer| graph.nodes().unwrap()[0].keep(buffer).unwrap(),
        ];
        for (number, give) in ways.into_iter().enumerate() {
            let foreign = other::clone(mine.as_raw().unwrap());
            let before = allocations();
            {
                // SAFETY: the graph lives longer than the handles, and what its nodes use as long.
                let graph = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
                let buffer = stream.zeros::<u32>(N).unwrap();
                stream.synchronize_blocking().unwrap();
                give(&bench, &graph, &buffer);
            }
            settle();
            assert_eq!(allocations(), before + 1, "way {number}");
            other::destroy(foreign);
            assert!(soon(&|| allocations() == before), "way {number}");
        }
    });
}

#[test]
fn reading_an_adopted_graph_costs_no_user_object_and_adding_the_first_node_one() {
    let context = setup();
    no_leaks(|| {
        let foreign = other::graph();
        other::empty(foreign, &[]);
        let retains = [("cuUserObjectCreate", 1), ("cuGraphRetainUserObject", 1)];
        {
            // SAFETY: the graph lives longer than the handles.
            let (graph, cost) = count(|| unsafe { Graph::from_raw(&context, foreign) }.unwrap());
            retains.iter().for_each(|(call, _)| assert_eq!(cost.calls(call), 0, "{cost}"));
            let (_, cost) = count(|| (graph.nodes().unwrap(), graph.clone_graph().unwrap()));
            retains.iter().for_each(|(call, _)| assert_eq!(cost.calls(call), 0, "{cost}"));
            for call in [Call::cuUserObjectCreate, Call::cuGraphRetainUserObject] {
                let injected = fail(call, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
                assert!(graph.root().empty().unwrap_err().to_string().contains(call.name()));
                drop(injected);
                assert_eq!(graph.len().unwrap(), 1);
            }
            let (_, cost) = count(|| graph.root().empty().unwrap());
            cost.assert_calls(&[retains[0], retains[1], ("cuGraphAddNode", 1)]);
            let (_, cost) = count(|| graph.root().empty().unwrap());
            cost.assert_calls(&[("cuGraphAddNode", 1)]);
            let (lent, cost) = count(|| graph.lend().unwrap());
            cost.assert_calls(&[]);
            assert_eq!(lent, foreign);
        }
        other::destroy(foreign);
    });
}

#[test]
fn an_adopted_graph_does_not_retain_who_owns_it() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let adopt = |raw: CUgraph, keep: Owner| {
            // SAFETY: the graph lives as long as one of its owners here.
            unsafe { Graph::from_raw_with(&context, raw, keep) }.unwrap()
        };
        let before = allocations();
        let foreign = other::graph();
        let graph = adopt(foreign, Owner::other(Destroys(foreign.expose_provenance())));
        let fill = graph.root().fill(&stream.zeros::<u32>(N).unwrap(), 1).unwrap();
        graph.lend().unwrap();
        let (second, second_gone) = flag();
        assert_eq!(adopt(foreign, second), graph);
        let exec = graph.instantiate().unwrap();
        let clone = graph.clone_graph().unwrap();
        drop((graph, fill));
        settle();
        assert!(!second_gone());
        drop(exec);
        settle();
        assert_eq!(raw::nodes(foreign).len(), 1, "the clone keeps it");
        assert!(!second_gone());
        drop(clone);
        assert!(soon(&second_gone) && soon(&|| allocations() == before));
    });
}

/// A launch given to a node of other code's has the attributes that it was given, and no others.
#[test]
fn what_a_new_launch_of_an_adopted_node_does_not_set_is_the_drivers_default() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(N).unwrap();
        let increment = kernel(&context, "increment");
        let plain = per(N, 64);
        let mut configs = vec![
            plain.cluster(1),
            plain.priority(-1),
            plain.memory_sync_domain(MemorySyncDomain::Remote),
            plain.memory_sync_domain_map(1, 0),
        ];
        if raw::driver().version() >= cuda_sys::Version::new(12, 5) {
            configs.push(plain.shared_carveout(50));
        }
        let asked = [
            NodeAttributeKind::Cluster,
            NodeAttributeKind::Priority,
            NodeAttributeKind::MemorySyncDomain,
            NodeAttributeKind::MemorySyncDomainMap,
            NodeAttributeKind::SharedCarveout,
        ];
        let told = |node: &KernelNode| asked.map(|kind| format!("{:?}", node.attribute(kind).unwrap()));
        for config in configs {
            let made = context.graph().unwrap();
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            let own = unsafe { made.root().launch_untyped(&increment, config, params![&buffer, N as u32]) };
            let foreign = other::clone(made.as_raw().unwrap());
            {
                // SAFETY: the graph lives longer than the handles.
                let graph = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
                let node = KernelNode::try_from(graph.nodes().unwrap().remove(0)).unwrap();
                assert_eq!(told(&node), told(own.as_ref().unwrap()), "{config}");
                // SAFETY: as above.
                unsafe { node.set_untyped(&increment, plain, params![&buffer, N as u32]) }.unwrap();
                // SAFETY: as above.
                unsafe { own.as_ref().unwrap().set_untyped(&increment, plain, params![&buffer, N as u32]) }
                    .unwrap();
                assert_eq!(told(&node), told(own.as_ref().unwrap()), "{config}");
                assert_eq!(node.config().unwrap(), plain);
            }
            other::destroy(foreign);
        }
    });
}

/// Every adoption of the same graph gives the owner again.
#[test]
fn an_owner_given_again_is_held_once() {
    let context = setup();
    let owner = std::sync::Arc::new(());
    let foreign = other::graph();
    let _destroys = Destroys(foreign.expose_provenance());
    // SAFETY: the graph lives longer than the handles.
    let adopt = || unsafe { Graph::from_raw_with(&context, foreign, Owner::shared(owner.clone())) }.unwrap();
    let first = adopt();
    let held = std::sync::Arc::strong_count(&owner);
    for _ in 0..10 {
        drop(adopt());
    }
    assert_eq!(std::sync::Arc::strong_count(&owner), held);
    drop(first);
}

/// Kernels of modules have no handle here, and are kernels all the same where the driver takes them
/// for these.
#[test]
fn kernels_of_modules_in_an_adopted_graph_are_taken_for_kernels() {
    let context = setup();
    needs!(EdgeKinds);
    let foreign = other::graph();
    let _destroys = Destroys(foreign.expose_provenance());
    let driver = raw::driver();
    let mut module = core::ptr::null_mut();
    context
        .with_current(|| {
            let text = std::ffi::CString::new(SMALL).unwrap();
            let mut function = core::ptr::null_mut();
            // SAFETY: the text and the names are C strings, the out pointers valid, and the kernel
            // takes no parameters.
            unsafe {
                raw::ok(driver.cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
                raw::ok(driver.cuModuleGetFunction(&raw mut function, module, c"empty".as_ptr()));
            }
            for _ in 0..2 {
                let params = cuda_sys::CUDA_KERNEL_NODE_PARAMS_v2 {
                    func: function,
                    gridDimX: 1,
                    gridDimY: 1,
                    gridDimZ: 1,
                    blockDimX: 1,
                    blockDimY: 1,
                    blockDimZ: 1,
                    ..Default::default()
                };
                let mut node = core::ptr::null_mut();
                // SAFETY: the graph lives, and the parameters are complete.
                raw::ok(unsafe {
                    driver.cuGraphAddKernelNode(
                        &raw mut node,
                        foreign,
                        core::ptr::null(),
                        0,
                        &raw const params,
                    )
                });
            }
        })
        .unwrap();
    // SAFETY: the graph lives longer than the handles.
    let graph = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
    let nodes = graph.nodes().unwrap();
    assert!(nodes.iter().all(|node| matches!(node.kind(), NodeKind::Other(_))));
    drop(graph.instantiate_with(InstantiateOptions::new().device_launch()).unwrap());
    graph.add_edges(&[(&nodes[0], &nodes[1], EdgeKind::Programmatic)]).unwrap();
    let empty = kernel(&context, "empty");
    let after = graph.after_all([(&nodes[0], EdgeKind::Programmatic)]).unwrap();
    let before = graph.root().before_all([(&nodes[1], EdgeKind::Programmatic)]).unwrap();
    // SAFETY: the kernel does nothing.
    unsafe {
        after.launch_untyped(&empty, per(1, 1), params![]).unwrap();
        before.launch_untyped(&empty, per(1, 1), params![]).unwrap();
    }
}

/// Who gives an owner while the graph moves into a node gets the graph where it is, and the owner
/// is kept.
#[test]
fn an_owner_given_while_the_graph_moves_is_kept_where_it_goes() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        for round in 0..1000 {
            let (outer, inner) = (context.graph().unwrap(), context.graph().unwrap());
            (0..round % 40).for_each(|_| drop(inner.root().empty().unwrap()));
            let keep = inner.clone();
            let value = inner.as_raw().unwrap().expose_provenance();
            let (owner, gone) = flag();
            let barrier = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                let mover = scope.spawn(|| {
                    barrier.wait();
                    outer.root().child_moved(inner).unwrap()
                });
                barrier.wait();
                (0..(round % 7) * 20).for_each(|_| core::hint::spin_loop());
                let raw = core::ptr::with_exposed_provenance_mut(value);
                // SAFETY: the graph lives in one of the two places.
                let found = unsafe { Graph::from_raw_with(&context, raw, owner) };
                let node = mover.join().unwrap();
                let found = found.unwrap();
                assert!(!gone(), "round {round}: {found:?}");
                node.remove().unwrap();
            });
            drop((keep, outer));
        }
    });
}

/// What others tie to the handle of a graph does not hide the graph from who asks for it by its raw
/// value.
#[test]
fn a_graph_is_found_beside_what_else_is_tied_to_its_handle() {
    let context = setup();
    no_leaks(|| {
        for first in [true, false] {
            let handle = GraphHandle::create(&context).unwrap();
            let other = std::sync::Arc::new(String::from("other"));
            let tie = || assert!(handle.tie(&other).is_none_or(|known| known == other));
            // SAFETY: the handle lives until the graph is gone.
            let ask = || unsafe { Graph::from_raw(&context, handle.as_raw()) }.unwrap();
            if first {
                tie();
            }
            let graph = ask();
            tie();
            assert_eq!(ask(), graph);
            assert_eq!(handle.knowledge::<String>(), Some(other));
        }
    });
}

/// An executable lets go of a graph of other code, which may be destroyed then, and keeps what its
/// nodes use.
#[test]
fn an_executable_outlives_the_adopted_graph_that_it_was_made_of() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let out = stream.zeros::<u32>(N).unwrap();
        let foreign = other::graph();
        // SAFETY: it lives as long as its handles.
        let adopt = |raw: CUgraph| unsafe { Graph::from_raw(&context, raw) }.unwrap();
        let graph = adopt(foreign);
        graph.root().fill(&out, 7).unwrap().named("first");
        let mut exec = graph.instantiate().unwrap();
        assert_eq!(exec.graph(), Some(graph.clone()));
        drop(graph);
        assert_eq!(exec.graph(), None);
        // Nothing is known of it that belongs to the handles that are gone.
        let again = adopt(foreign);
        assert_ne!(again.nodes().unwrap()[0].name(), "first");
        assert_eq!(exec.graph(), None);
        drop(again);
        other::destroy(foreign);
        let next = other::graph();
        assert!(adopt(next).is_empty().unwrap());
        exec.launch(stream).unwrap();
        assert_eq!(out.read_blocking(stream).unwrap(), [7; N]);
        drop(exec);
        other::destroy(next);
    });
}
