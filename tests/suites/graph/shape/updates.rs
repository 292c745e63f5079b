//! Updates of shaped executables go by the nodes that the user has drawn.

use cuda_graph::{
    CacheOptions, ContextExt, Error, Graph, GraphCache, InstantiateOptions, KernelNode, NodeError,
    RefusalReason, Shape, UpdateError,
};
use cuda_handles::Buffer;
use cuda_launch::{params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{fail, kernel, no_leaks, setup};

use super::{first, shaped, shapes};
use crate::capture::{N, add_to};

#[test]
fn nodes_are_set_enabled_and_refused_by_the_drawn_nodes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let (numbers, other) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        for shape in shapes() {
            stream.clear(&numbers).unwrap();
            stream.clear(&other).unwrap();
            let graph = context.graph().unwrap();
            let start = graph.root().empty().unwrap();
            let one = start.then().launch(&add, per(1, 1), (1, &numbers)).unwrap();
            let ten = one.then().launch(&add, per(1, 1), (10, &numbers)).unwrap();
            let child = context.graph().unwrap();
            let inner = child.root().launch(&add, per(1, 1), (100, &numbers)).unwrap();
            let node = ten.then().child(&child).unwrap();
            let inner = node.embedded().unwrap().find_clone_of(&inner).unwrap();
            let mut exec = shaped(&graph, shape);
            exec.launch(&stream).unwrap();
            assert_eq!(first(&numbers, &stream), 111);
            exec.node(&one).set(&add, per(1, 1), (1, &other)).unwrap();
            exec.node(&ten).set_enabled(false).unwrap();
            assert!(!exec.node(&ten).is_enabled().unwrap());
            exec.launch(&stream).unwrap();
            assert_eq!((first(&numbers, &stream), first(&other, &stream)), (211, 1), "{shape:?}");
            exec.node(&ten).set_enabled(true).unwrap();
            drop(inner);
            let refused = exec.node(&node).set_graph(&child);
            let Err(Error::Update(UpdateError::NotPossible { why, .. })) = &refused else {
                panic!("{refused:?}")
            };
            assert!(why.contains("shaping"), "{why}");
            ten.remove().unwrap();
            let removed = exec.node(&ten).set_enabled(false);
            assert!(matches!(removed, Err(Error::Node(NodeError::Removed { .. }))), "{removed:?}");
            exec.launch(&stream).unwrap();
            assert_eq!((first(&numbers, &stream), first(&other, &stream)), (321, 2), "{shape:?}");
        }
    });
}

#[test]
fn parameters_go_to_the_drawn_nodes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let buffers: Vec<_> = (0..3).map(|_| stream.zeros::<u32>(N).unwrap()).collect();
        for shape in shapes() {
            buffers.iter().for_each(|buffer| stream.clear(buffer).unwrap());
            let graph = context.graph().unwrap();
            let amount = graph.param(1_u32).unwrap();
            let target = graph.param(&buffers[0]).unwrap();
            let added = graph.root().launch(&add, per(1, 1), (&amount, &target)).unwrap();
            added.then().launch(&add, per(1, 1), (&amount, &target)).unwrap();
            let mut exec = shaped(&graph, shape);
            for (round, buffer) in buffers.iter().enumerate() {
                exec.launch_with(&stream, ((&amount, round as u32 + 1), (&target, buffer))).unwrap();
            }
            for (round, buffer) in buffers.iter().enumerate() {
                assert_eq!(first(buffer, &stream), 2 * (round as u32 + 1), "{shape:?}");
            }
        }
    });
}

#[test]
fn a_whole_update_takes_the_own_graph_and_a_rebuild_shapes_again() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let mut nodes = Vec::new();
        for _ in 0..3 {
            let other = stream.zeros::<u32>(N).unwrap();
            nodes.push(graph.root().launch(&add, per(1, 1), (1, &other)).unwrap());
        }
        let all = graph.after([&nodes[0], &nodes[1], &nodes[2]]).unwrap();
        let last = all.launch(&add, per(1, 1), (1, &numbers)).unwrap();
        let mut exec = shaped(&graph, Shape::Reduced);
        last.set(&add, per(1, 1), (5, &numbers)).unwrap();
        exec.launch(&stream).unwrap();
        assert!(exec.update(&graph).unwrap().is_updated());
        exec.launch(&stream).unwrap();
        assert_eq!(first(&numbers, &stream), 6);
        let failure = fail(Call::cuGraphAddNode, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let refused = exec.update(&graph).unwrap();
        assert!(failure.hit());
        drop(failure);
        let refusal = refused.refusal().unwrap();
        assert!(
            refusal.reason == RefusalReason::Shaped && refusal.why.contains("OUT_OF_MEMORY"),
            "{refusal}"
        );
        let more: Graph = context.graph().unwrap();
        more.root().launch(&add, per(1, 1), (10, &numbers)).unwrap();
        let refused = exec.update(&more).unwrap();
        assert_eq!(refused.refusal().unwrap().reason, RefusalReason::Shaped);
        let refusal = exec.update_or_rebuild(&more).unwrap().unwrap();
        assert_eq!(refusal.reason, RefusalReason::Shaped);
        exec.launch(&stream).unwrap();
        assert_eq!(first(&numbers, &stream), 16);
        assert_eq!(exec.shape_report().unwrap().before().unwrap().nodes, 1);
    });
}

#[test]
fn a_kernel_that_may_wait_takes_no_place_of_one_that_does_not() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let increment = kernel(&context, "increment");
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let node = graph.root().launch(&add, per(1, 1), (1, &numbers)).unwrap();
        // The two get a kernel in front, which may hold back what others wait for.
        let other = stream.zeros::<u32>(N).unwrap();
        graph.root().launch(&add, per(1, 1), (1, &other)).unwrap();
        let mut exec = shaped(&graph, Shape::Reduced);
        let assuming = InstantiateOptions::new().shape(Shape::Reduced).assume_progress();
        let mut assuming = graph.instantiate_with(assuming).unwrap();
        let arguments = || params![&numbers, 1_u32];
        // SAFETY: the kernel increments the numbers that it is given.
        let refused = unsafe { exec.node(&node).set_untyped(&increment, per(1, 1), arguments()) };
        assert!(matches!(refused, Err(Error::Update(UpdateError::NotPossible { .. }))), "{refused:?}");
        // SAFETY: as above.
        unsafe { node.set_untyped(&increment, per(1, 1), arguments()) }.unwrap();
        let refused = exec.update(&graph).unwrap();
        assert_eq!(refused.refusal().unwrap().reason, RefusalReason::Shaped);
        exec.launch(&stream).unwrap();
        // SAFETY: as above.
        unsafe { assuming.node(&node).set_untyped(&increment, per(1, 1), arguments()) }.unwrap();
        assert!(assuming.update(&graph).unwrap().is_updated());
        assuming.launch(&stream).unwrap();
        assert_eq!(first(&numbers, &stream), 2);
    });
}

#[test]
fn executables_of_a_cache_are_told_apart_by_their_shape() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let cache: GraphCache<u32, ()> = GraphCache::new(CacheOptions::new());
        for _ in 0..2 {
            for shape in [Shape::AsBuilt, Shape::Reduced] {
                let options = InstantiateOptions::new().shape(shape);
                let build = || {
                    let graph = context.graph()?;
                    graph.root().fill(&numbers, 1)?;
                    Ok((graph, ()))
                };
                cache.get_with(&stream, &options, 1, 0, build).unwrap().parts().0.launch(&stream).unwrap();
            }
        }
        assert_eq!(cache.statistics().builds, 2);
    });
}

/// A fill, two kernels beside each other, and a copy to the host, joined by empty nodes.
fn program(
    context: &cuda_handles::Context,
    add: &add_to,
    amount: u32,
    memory: [&Buffer<u32>; 2],
    output: &cuda_handles::SharedHostBuffer<u32>,
) -> (Graph, KernelNode) {
    let graph = context.graph().unwrap();
    let fills = memory.map(|numbers| graph.root().fill(numbers, 1).unwrap());
    let start = graph.after([&fills[0], &fills[1]]).unwrap().empty().unwrap();
    let added = memory.map(|numbers| start.then().launch(add, per(1, 1), (amount, numbers)).unwrap());
    let end = graph.after([&added[0], &added[1]]).unwrap().empty().unwrap();
    end.then().copy(memory[1], output).unwrap();
    let [first, _] = added;
    (graph, first)
}

#[test]
fn a_whole_update_takes_another_graph_with_the_same_nodes_and_edges() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load_waiting(&context).unwrap();
        let numbers: Vec<_> = (0..4).map(|_| stream.zeros::<u32>(N).unwrap()).collect();
        let outputs = [1, 2].map(|_| context.pinned_zeros::<u32>(N).unwrap().share());
        for shape in shapes() {
            let (first, _) = program(&context, &add, 10, [&numbers[0], &numbers[1]], &outputs[0]);
            let mut exec = shaped(&first, shape);
            exec.launch(&stream).unwrap();
            let (second, node) = program(&context, &add, 20, [&numbers[2], &numbers[3]], &outputs[1]);
            assert!(exec.update(&second).unwrap().is_updated(), "{shape:?}");
            assert!(exec.shape_report().unwrap().reason_to_leave().is_none());
            exec.launch(&stream).unwrap();
            let read = |numbers: Vec<u32>| numbers[0];
            let values = numbers.iter().map(|numbers| read(numbers.read_blocking(&stream).unwrap()));
            assert_eq!(values.collect::<Vec<_>>(), [11, 11, 21, 21]);
            let values = outputs.each_ref().map(|output| read(output.read_blocking(&stream).unwrap()));
            assert_eq!(values, [11, 21]);
            // The nodes of both graphs stand for those of the executable.
            exec.node(&node).set(&add, per(1, 1), (40, &numbers[2])).unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(read(numbers[2].read_blocking(&stream).unwrap()), 41);

            // A graph that other code knows, and one with other edges.
            let (lent, _) = program(&context, &add, 10, [&numbers[0], &numbers[1]], &outputs[0]);
            lent.lend().unwrap();
            let refused = exec.update(&lent).unwrap();
            assert_eq!(refused.refusal().unwrap().reason, RefusalReason::Shaped);
            let (other, _) = program(&context, &add, 10, [&numbers[0], &numbers[1]], &outputs[0]);
            let nodes = other.nodes().unwrap();
            other.add_edge(&nodes[0], &nodes[nodes.len() - 1]).unwrap();
            let refused = exec.update(&other).unwrap();
            assert_eq!(refused.refusal().unwrap().reason, RefusalReason::Shaped);
            stream.clear(&numbers[0]).unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(read(numbers[0].read_blocking(&stream).unwrap()), 0);
        }
    });
}

#[test]
fn a_cache_updates_shaped_executables() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load_waiting(&context).unwrap();
        let numbers: Vec<_> = (0..4).map(|_| stream.zeros::<u32>(N).unwrap()).collect();
        let output = context.pinned_zeros::<u32>(N).unwrap().share();
        let cache: GraphCache<u32, ()> = GraphCache::new(CacheOptions::new());
        let options = InstantiateOptions::new().shape(Shape::Auto);
        for stamp in 0..4_u32 {
            let pair = [&numbers[stamp as usize], &numbers[(stamp as usize + 1) % 4]];
            let build = || Ok((program(&context, &add, stamp, pair, &output).0, ()));
            let mut cached = cache.get_with(&stream, &options, 1, u64::from(stamp), build).unwrap();
            cached.parts().0.launch(&stream).unwrap();
            drop(cached);
            assert_eq!(output.read_blocking(&stream).unwrap()[0], 1 + stamp);
        }
        let statistics = cache.statistics();
        assert_eq!((statistics.builds, statistics.updates), (4, 3), "{statistics:?}");
    });
}
