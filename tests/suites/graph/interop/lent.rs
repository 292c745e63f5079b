//! Graphs lent to other code, and raw graphs adopted from it.

use core::ptr;

use cuda_graph::{
    ContextExt, EdgeError, EmbedError, EmptyNode, Error, Graph, KernelNode, MemcpyNode, MemsetNode, Node,
    NodeError, NodeKind,
};
use cuda_handles::{FillLayout, Kernel, Stream};
use cuda_launch::{params, per};
use cuda_sys::{CUDA_KERNEL_NODE_PARAMS_v2, CUresult, Call};
use cuda_tests::{Kind, SMALL, SOON, count, fail, kernel, live, needs, no_leaks, raw, settle, setup, until};

use crate::common::chains::Bench;
use crate::common::gone::{allocations, flag, soon};
use crate::common::other;

const N: usize = 64;

pub(crate) fn kinds_of(graph: &Graph) -> Vec<NodeKind> {
    graph.nodes().unwrap().iter().map(|node| node.kind()).collect()
}

/// A node that adds 1 to each of 64 numbers in a buffer of which nobody else has a handle, and
/// copies them to `out`.
pub(crate) fn counter(
    graph: &Graph,
    increment: &Kernel,
    home: &Stream,
    out: &cuda_handles::Buffer<u32>,
) -> Node {
    let own = home.zeros::<u32>(N).unwrap();
    home.synchronize_blocking().unwrap();
    // SAFETY: the arguments are the kernel's, and the count is the buffer's.
    let step =
        unsafe { graph.root().launch_untyped(increment, per(N, 64), params![&own, N as u32]) }.unwrap();
    step.then().copy(&own, out).unwrap().into()
}

#[test]
fn clones_and_executables_of_a_lent_graph_run_when_every_handle_is_gone() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u32>(N).unwrap();
        let before = allocations();
        let libraries = live().of(Kind::Library);
        let (exec, clone, late) = {
            let increment = kernel(&context, "increment");
            let graph = context.graph().unwrap();
            counter(&graph, &increment, &stream, &out);
            let raw = graph.lend().unwrap();
            let exec = other::instantiate(&context, raw);
            let clone = other::clone(raw);
            // Later clones have the added nodes; the owners of the earlier clones stay.
            graph.nodes().unwrap()[0].remove().unwrap();
            graph.nodes().unwrap()[0].remove().unwrap();
            counter(&graph, &increment, &stream, &out);
            (exec, clone, other::clone(raw))
        };
        settle();
        assert_eq!(allocations(), before + 2);
        drop((0..16).map(|_| stream.zeros::<u32>(N).unwrap()).collect::<Vec<_>>());
        let of_clone = other::instantiate(&context, clone);
        other::destroy(clone);
        let of_late = other::instantiate(&context, late);
        other::destroy(late);
        settle();
        for (exec, expected) in [(exec, 1), (of_clone, 2), (of_late, 1), (exec, 3), (of_late, 2)] {
            other::launch(exec, &stream);
            assert_eq!(out.read_blocking(&stream).unwrap(), [expected; N]);
        }
        other::destroy_exec(exec);
        other::destroy_exec(of_late);
        settle();
        assert_eq!(allocations(), before + 2, "one is left that may use both");
        other::launch(of_clone, &stream);
        other::destroy_exec(of_clone);
        assert!(soon(&|| allocations() == before && live().of(Kind::Library) == libraries));
    });
}

#[test]
fn a_lent_graph_keeps_what_its_nodes_used_until_it_is_gone() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let (before, before_gone) = flag();
        let (during, during_gone) = flag();
        let (with_graph, with_graph_gone) = flag();
        let node = graph.root().empty().unwrap();
        node.keep(before).unwrap();
        graph.lend().unwrap();
        node.remove().unwrap();
        drop(node);
        let node = graph.root().empty().unwrap();
        node.keep(during).unwrap();
        node.remove().unwrap();
        graph.keep(with_graph);
        settle();
        assert!(!before_gone() && !during_gone() && !with_graph_gone());
        drop(node);
        drop(graph);
        assert!(until(SOON, || before_gone() && during_gone() && with_graph_gone()));
    });
}

#[test]
fn what_nodes_in_embedded_graphs_use_is_kept_for_a_lent_root_too() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let out = stream.zeros::<u32>(N).unwrap();
        let exec = {
            let graph = context.graph().unwrap();
            let raw = graph.lend().unwrap();
            let source = context.graph().unwrap();
            counter(&source, &bench.increment, stream, &out);
            let child = graph.root().child(&source).unwrap();
            let other_source = context.graph().unwrap();
            let inside = child.embedded().unwrap();
            child.then().child(&other_source).unwrap().set_graph(&source).unwrap();
            inside.root().fill(&stream.zeros::<u32>(N).unwrap(), 1).unwrap();
            stream.synchronize_blocking().unwrap();
            let exec = other::instantiate(&context, raw);
            inside.nodes().unwrap().iter().for_each(|node| node.remove().unwrap());
            child.remove().unwrap();
            exec
        };
        settle();
        drop((0..16).map(|_| stream.zeros::<u32>(N).unwrap()).collect::<Vec<_>>());
        for expected in [2, 4] {
            other::launch(exec, stream);
            assert_eq!(out.read_blocking(stream).unwrap(), [expected; N]);
        }
        other::destroy_exec(exec);
    });
}

#[test]
fn an_embedded_graph_is_lent_by_itself() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let out = bench.stream.zeros::<u32>(N).unwrap();
        let before = allocations();
        let (clone, raw) = {
            let source = context.graph().unwrap();
            counter(&source, &bench.increment, &bench.stream, &out);
            let graph = context.graph().unwrap();
            let inside = graph.root().child(&source).unwrap().embedded().unwrap();
            let raw = inside.lend().unwrap();
            assert_eq!(raw, inside.as_raw().unwrap());
            // SAFETY: the graph lives, and was lent.
            let known = unsafe { Graph::from_raw(&context, raw) }.unwrap();
            assert_eq!(known, inside);
            let (late, gone) = flag();
            inside.nodes().unwrap()[0].keep(late).unwrap();
            let clone = other::clone(raw);
            inside.parent().unwrap().unwrap().remove().unwrap();
            settle();
            assert!(!gone());
            assert!(matches!(inside.lend(), Err(Error::Node(NodeError::GraphRemoved))));
            (clone, raw)
        };
        let exec = other::instantiate(&context, clone);
        other::destroy(clone);
        settle();
        assert_eq!(allocations(), before + 1);
        other::launch(exec, &bench.stream);
        assert_eq!(out.read_blocking(&bench.stream).unwrap(), [1; N]);
        other::destroy_exec(exec);
        assert!(soon(&|| allocations() == before));
        let _ = raw;
    });
}

#[test]
fn lending_costs_one_user_object_and_not_lending_none() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = bench.chain(&context, 5);
        let (raw, cost) = count(|| graph.lend().unwrap());
        cost.assert_calls(&[("cuUserObjectCreate", 1), ("cuGraphRetainUserObject", 1)]);
        let (again, cost) = count(|| (graph.lend().unwrap(), graph.clone().lend().unwrap()));
        cost.assert_calls(&[]);
        assert_eq!(again, (raw, raw));
        assert_eq!(graph.as_raw().unwrap(), raw);
        let (_, cost) = count(|| bench.step(&graph.root()));
        cost.assert_calls(&[("cuGraphAddNode", 1)]);
        let ((), cost) = count(|| drop(graph));
        cost.assert_calls(&[("cuCtxGetCurrent", 2), ("cuGraphDestroy", 1), ("cuUserObjectRelease", 1)]);
    });
}

#[test]
fn a_failed_lending_leaves_the_graph_as_it_was() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let (owner, gone) = flag();
        graph.root().empty().unwrap().keep(owner).unwrap();
        for call in [Call::cuUserObjectCreate, Call::cuGraphRetainUserObject] {
            let injected = fail(call, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            assert!(graph.lend().is_err());
            drop(injected);
        }
        graph.nodes().unwrap()[0].remove().unwrap();
        assert!(soon(&gone));
        graph.lend().unwrap();
    });
}

#[test]
fn known_graphs_come_back_as_themselves() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let node = graph.root().empty().unwrap().named("mine");
        let raw = graph.lend().unwrap();
        // SAFETY: the graph lives.
        let (known, cost) = count(|| unsafe { Graph::from_raw(&context, raw) }.unwrap());
        cost.assert_calls(&[]);
        assert_eq!(known, graph);
        assert_eq!(known.nodes().unwrap(), [(*node).clone()]);
        let clone = graph.clone_graph().unwrap();
        // SAFETY: the clone lives.
        assert_eq!(unsafe { Graph::from_raw(&context, clone.as_raw().unwrap()) }.unwrap(), clone);
    });
}

#[test]
fn a_foreign_graph_is_adopted_with_its_nodes() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let template = bench.chain(&context, 1);
        let params = raw::kernel(template.nodes().unwrap()[0].as_raw().unwrap());
        let foreign = other::graph();
        let first = other::empty(foreign, &[]);
        let second = other::kernel(foreign, &[first], params);
        let inner = other::graph();
        other::kernel(inner, &[], params);
        other::child(foreign, inner);
        other::destroy(inner);
        other::host(foreign);
        let event = context.event().unwrap();
        other::record(foreign, &event);
        {
            // SAFETY: the graph lives longer than the handles, and so does what its nodes use.
            let graph = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
            let nodes = graph.nodes().unwrap();
            let kinds = [
                NodeKind::Empty,
                NodeKind::Kernel,
                NodeKind::ChildGraph,
                NodeKind::HostCallback,
                NodeKind::EventRecord,
            ];
            assert_eq!(kinds_of(&graph), kinds);
            assert_eq!(nodes[1].as_raw().unwrap(), second);
            assert!(EmptyNode::try_from(nodes[0].clone()).is_ok());
            let launch = KernelNode::try_from(nodes[1].clone()).unwrap();
            assert_eq!(launch.kernel().unwrap(), bench.increment);
            let config = launch.config().unwrap();
            assert_eq!((config.grid(), config.block()), (per(N, 64).grid(), per(N, 64).block()));
            assert_eq!(nodes[0].successors().unwrap(), nodes[1..2]);
            assert_eq!(graph.edges().unwrap().len(), 1);
            let inside = graph.children().unwrap()[0].embedded().unwrap();
            assert_eq!(inside.nodes().unwrap()[0].kind(), NodeKind::Kernel);
            // SAFETY: as above.
            assert_eq!(unsafe { Graph::from_raw(&context, foreign) }.unwrap(), graph);

            // It is used as any other: added to, cloned, embedded, run.
            let bound = nodes[1].then().child(&template).unwrap();
            graph.add_edge(&nodes[2], &nodes[0]).unwrap();
            assert_eq!(bench.adds(&graph), 3);
            let clone = graph.clone_graph().unwrap();
            assert_eq!(kinds_of(&clone), kinds_of(&graph));
            assert_eq!(bench.adds(&clone), 3);
            bound.remove().unwrap();
            if crate::common::chains::moves() {
                let outer = context.graph().unwrap();
                assert!(matches!(
                    outer.root().child_moved(graph.clone()),
                    Err(Error::Embed(EmbedError::NotOwned))
                ));
            }
        }
        assert_eq!(raw::nodes(foreign).len(), 5, "it is not destroyed");
        // SAFETY: as above.
        let again = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
        assert_eq!(bench.adds(&again), 2);
        drop(again);
        other::destroy(foreign);
    });
}

#[test]
fn what_is_read_of_a_foreign_node_is_what_it_was_made_with() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (a, b) = (stream.zeros::<u32>(256).unwrap(), stream.zeros::<u32>(256).unwrap());
        let bytes = stream.zeros::<u8>(100).unwrap();
        let pinned = context.pinned_zeros::<u32>(16).unwrap().share();
        let mine = context.graph().unwrap();
        let fill = mine.root().fill(a.slice(3..77).unwrap(), 0x0102_0304).unwrap();
        let narrow = mine.root().fill(&bytes, 7).unwrap();
        let rectangle = mine.root().fill_2d(&b, 16, [5, 9], 8).unwrap();
        let copy = mine.root().copy(a.slice(..64).unwrap(), b.slice(10..74).unwrap()).unwrap();
        let down = mine.root().copy(a.slice(..16).unwrap(), &pinned).unwrap();
        let config = per(N, 64).cooperative();
        let params = params![&bench.numbers, N as u32];
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        let launch = unsafe { mine.root().launch_untyped(&bench.increment, config, params) }.unwrap();
        let foreign = other::clone(mine.as_raw().unwrap());
        {
            // SAFETY: the graph lives longer than the handles, and so does what its nodes use.
            let graph = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
            let nodes = graph.nodes().unwrap();
            for (node, mine) in nodes.iter().zip([&fill, &narrow, &rectangle]) {
                let (found, mine) = (MemsetNode::try_from(node.clone()).unwrap(), mine.layout().unwrap());
                assert_eq!(FillLayout { space: mine.space, ..found.layout().unwrap() }, mine);
            }
            for (node, mine) in nodes[3..].iter().zip([&copy, &down]) {
                let found = MemcpyNode::try_from(node.clone()).unwrap();
                assert_eq!(found.layout().unwrap(), mine.layout().unwrap());
            }
            let found = KernelNode::try_from(nodes[5].clone()).unwrap();
            assert_eq!(found.config().unwrap(), launch.config().unwrap());
            assert_eq!(found.kernel().unwrap(), launch.kernel().unwrap());
        }
        other::destroy(foreign);
    });
}

#[test]
fn kernels_of_libraries_that_other_code_loaded_are_adopted_without_owning_them() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let text = std::ffi::CString::new(SMALL).unwrap();
        let mut library = ptr::null_mut();
        let mut function = ptr::null_mut();
        // SAFETY: the image is a string that outlives the call, and the out pointers are valid.
        unsafe {
            raw::ok(raw::driver().cuCtxPushCurrent(context.as_raw()));
            let (image, none, no) = (text.as_ptr().cast(), ptr::null_mut(), ptr::null_mut());
            raw::ok(raw::driver().cuLibraryLoadData(
                &raw mut library,
                image,
                none,
                ptr::null_mut(),
                0,
                no,
                ptr::null_mut(),
                0,
            ));
            raw::ok(raw::driver().cuLibraryGetKernel(&raw mut function, library, c"increment".as_ptr()));
            let mut popped = ptr::null_mut();
            raw::ok(raw::driver().cuCtxPopCurrent(&raw mut popped));
        }
        let template = bench.chain(&context, 1);
        let params = raw::kernel(template.nodes().unwrap()[0].as_raw().unwrap());
        let foreign = other::graph();
        other::kernel(foreign, &[], CUDA_KERNEL_NODE_PARAMS_v2 { kern: function, ..params });
        {
            // SAFETY: graph and library live longer than the handles.
            let graph = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
            let node = graph.nodes().unwrap().remove(0);
            match KernelNode::try_from(node) {
                Ok(node) => {
                    let kernel = node.kernel().unwrap();
                    assert_eq!((kernel.name(), kernel.as_raw()), ("increment", function));
                    assert_ne!(kernel, bench.increment);
                }
                // The driver does not tell the library before 12.5.
                Err(node) => assert!(matches!(node.kind(), NodeKind::Other(_)), "{node}"),
            }
            assert_eq!(bench.adds(&graph), 1);
        }
        other::destroy(foreign);
        settle();
        // SAFETY: nobody uses the library any more.
        raw::ok(unsafe { raw::driver().cuLibraryUnload(library) });
    });
}

#[test]
fn a_foreign_graph_is_taken_over() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let foreign = other::graph();
        let first = other::empty(foreign, &[]);
        other::empty(foreign, &[first]);
        let injected = fail(Call::cuGraphNodeGetType, 2, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        // SAFETY: the graph is nobody else's.
        let refused = unsafe { Graph::from_raw_owned(&context, foreign) };
        assert!(refused.is_err());
        drop((refused, injected));
        assert_eq!(raw::nodes(foreign).len(), 2, "it is still there");
        // SAFETY: as above.
        let graph = unsafe { Graph::from_raw_owned(&context, foreign) }.unwrap();
        assert_eq!(graph.edges().unwrap().len(), 1);
        bench.step(&graph.root());
        assert_eq!(bench.adds(&graph), 1);
        // SAFETY: the graph lives.
        assert_eq!(unsafe { Graph::from_raw(&context, foreign) }.unwrap(), graph);
        let ((), cost) = count(|| drop(graph));
        cost.assert_calls(&[("cuCtxGetCurrent", 1), ("cuGraphDestroy", 1)]);
    });
}

#[test]
fn an_owner_given_at_the_adoption_lives_as_long_as_anything_that_may_use_the_graph() {
    let context = setup();
    no_leaks(|| {
        let foreign = other::graph();
        other::empty(foreign, &[]);
        let (owner, gone) = flag();
        // SAFETY: the graph lives longer than the handles.
        let graph = unsafe { Graph::from_raw_with(&context, foreign, owner) }.unwrap();
        let exec = graph.instantiate().unwrap();
        let clone = graph.clone_graph().unwrap();
        let outer = context.graph().unwrap();
        let child = outer.root().child(&graph).unwrap();
        drop(graph);
        settle();
        assert!(!gone());
        drop(exec);
        settle();
        assert!(!gone());
        drop(clone);
        settle();
        assert!(!gone());
        child.remove().unwrap();
        assert!(gone());
        drop(outer);
        other::destroy(foreign);
    });
}

#[test]
fn a_lent_graph_is_known_by_its_raw_value_after_it_was_moved() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        let source = context.graph().unwrap();
        let (owner, gone) = flag();
        let inner = source.root().child(&context.graph().unwrap()).unwrap();
        let raw_inner = inner.embedded().unwrap().lend().unwrap();
        let raw = source.lend().unwrap();
        let outer = context.graph().unwrap();
        let moved = outer.root().child_moved(source).unwrap().embedded().unwrap();
        assert_eq!(moved.lend().unwrap(), raw);
        let deep = moved.children().unwrap()[0].embedded().unwrap();
        // SAFETY: both were lent, and live.
        unsafe {
            assert_eq!(Graph::from_raw(&context, raw).unwrap(), moved);
            assert_eq!(Graph::from_raw(&context, raw_inner).unwrap(), deep);
        }
        // What is used from now on goes into the logs that the graphs retain.
        let late = deep.root().empty().unwrap();
        late.keep(owner).unwrap();
        let clone = other::clone(raw);
        late.remove().unwrap();
        drop((outer, moved, deep, inner, late));
        settle();
        assert!(!gone());
        other::destroy(clone);
        assert!(soon(&gone));
    });
}

#[test]
fn a_graph_adopted_by_several_threads_is_one() {
    let context = setup();
    no_leaks(|| {
        let foreign = other::graph();
        let nodes: Vec<_> = (0..20).map(|_| other::empty(foreign, &[])).collect();
        for pair in nodes.windows(2) {
            other::connect(foreign, pair[1], pair[0]);
        }
        let address = foreign.expose_provenance();
        for _ in 0..20 {
            let start = std::sync::Barrier::new(4);
            let adopt = || {
                start.wait();
                // SAFETY: the graph lives, and nobody else uses it.
                unsafe { Graph::from_raw(&context, ptr::with_exposed_provenance_mut(address)) }.unwrap()
            };
            let all: Vec<Graph> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(adopt)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(all.iter().all(|graph| *graph == all[0]));
            let nodes = all[0].nodes().unwrap();
            assert!(matches!(
                all[1].add_edge(&nodes[0], &nodes[19]),
                Err(Error::Edge(EdgeError::Cycle { .. }))
            ));
        }
        other::destroy(foreign);
    });
}
