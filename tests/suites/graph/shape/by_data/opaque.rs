//! Nodes that keep their order with all others.

use cuda_graph::{ContextExt, Graph, Node};
use cuda_handles::{Image, Library};
use cuda_launch::{kernel, params, per};
use cuda_tests::{kernel, no_leaks, setup};

use super::{CONSTANT, by_data, figures};
use crate::capture::{N, add_to, increment_all};

kernel! {
    // SAFETY: the kernel in the file has these parameters, and multiplies each of the first `n`
    // elements by a constant.
    unsafe in "../../../../kernels/variables.ptx";

    fn weigh(n: u32, values: InOut<f32>)
    where values.len() >= n, grid.x * block.x >= n;
}

/// A fill, a node between, and another fill of other memory: a chain of three, with what became of
/// it.
fn between(graph: &Graph, add: impl FnOnce(&Node) -> Node) -> (usize, usize, usize) {
    let stream = graph.context().stream().unwrap();
    let (x, y) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
    let first = graph.root().fill(&x, 1).unwrap();
    let middle = add(&first);
    middle.then().fill(&y, 1).unwrap();
    let mut exec = by_data(graph);
    exec.launch(&stream).unwrap();
    stream.synchronize_blocking().unwrap();
    figures(&exec)
}

/// The figures of a chain of three, and of three nodes side by side.
const CHAIN: (usize, usize, usize) = (1, 2, 1);
const APART: (usize, usize, usize) = (3, 0, 3);

#[test]
fn kernels_without_a_promise_keep_their_order() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let add = add_to::load(&context).unwrap();
        let typed = |first: &Node| first.then().launch(&add, per(1, 1), (1, &numbers)).unwrap().into();
        assert_eq!(between(&context.graph().unwrap(), typed), APART);
        let increment = kernel(&context, "increment");
        let untyped = |first: &Node| {
            // SAFETY: the kernel increments the numbers that it is given.
            unsafe { first.then().launch_untyped(&increment, per(1, 1), params![&numbers, 1_u32]) }
                .unwrap()
                .into()
        };
        assert_eq!(between(&context.graph().unwrap(), untyped), CHAIN);
        kernel! {
            // SAFETY: the kernel in the file has these parameters.
            unsafe in "../../../../kernels/increment.ptx";

            /// # Safety
            /// None.
            unsafe fn increment_all(n: u32, values: InOut<u32>)
            where values.len() >= n;
        }
        let increment = increment_all::load(&context).unwrap();
        let unsafely = |first: &Node| {
            // SAFETY: there is no condition.
            unsafe { first.then().launch_unchecked(&increment, per(1, 1), (1, &numbers)) }.unwrap().into()
        };
        assert_eq!(between(&context.graph().unwrap(), unsafely), CHAIN);
    });
}

#[test]
fn kernels_of_images_with_variables_keep_their_order() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let floats = stream.zeros::<f32>(N).unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let weigh = weigh::load(&context).unwrap();
        assert!(!cuda_launch::TypedKernel::kernel(&weigh).library().is_stateless());
        let graph = context.graph().unwrap();
        let weighed =
            |first: &Node| first.then().launch(&weigh, per(N, 32), (N as u32, &floats)).unwrap().into();
        assert_eq!(between(&graph, weighed), CHAIN);
        let library = Library::load(&context, Image::Ptx(CONSTANT)).unwrap();
        // SAFETY: the image has the same kernel.
        let add = unsafe { add_to::of(&library) }.unwrap();
        let added = |first: &Node| first.then().launch(&add, per(1, 1), (1, &numbers)).unwrap().into();
        assert_eq!(between(&context.graph().unwrap(), added), APART);
        // SAFETY: the kernel does not use it.
        let table = unsafe { library.global::<u32>("table") }.unwrap();
        // A kernel cannot write it, and a fill of it keeps its order.
        assert_eq!(between(&context.graph().unwrap(), added), APART);
        let filled = |first: &Node| first.then().fill(&table, 1).unwrap().into();
        assert_eq!(between(&context.graph().unwrap(), filled), CHAIN);
    });
}

#[test]
fn memory_with_other_addresses_keeps_its_order() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let plain = context.alloc_blocking::<u32>(N).unwrap();
        let filled = |first: &Node| first.then().fill(&plain, 1).unwrap().into();
        assert_eq!(between(&context.graph().unwrap(), filled), APART);
        let pinned = context.pinned_zeros::<u32>(N).unwrap().share();
        let filled = |first: &Node| first.then().fill(&pinned, 1).unwrap().into();
        assert_eq!(between(&context.graph().unwrap(), filled), APART);
        if let Ok(managed) = context.managed_zeros::<u32>(N) {
            let managed = managed.share();
            let filled = |first: &Node| first.then().fill(&managed, 1).unwrap().into();
            assert_eq!(between(&context.graph().unwrap(), filled), CHAIN);
        }
        let numbers = stream.zeros::<u32>(N).unwrap();
        stream.synchronize_blocking().unwrap();
        // SAFETY: the memory is that of the numbers, which the buffer keeps.
        let foreign = unsafe {
            cuda_handles::Buffer::<u32>::from_foreign(&context, numbers.address(), N, numbers.clone())
        }
        .unwrap();
        let filled = |first: &Node| first.then().fill(&foreign, 1).unwrap().into();
        assert_eq!(between(&context.graph().unwrap(), filled), CHAIN);
    });
}

#[test]
fn nodes_of_other_types_keep_their_order_and_empty_ones_do_not() {
    let context = setup();
    no_leaks(|| {
        let event = context.event().unwrap();
        let recorded = |first: &Node| first.then().record(&event).unwrap().into();
        assert_eq!(between(&context.graph().unwrap(), recorded), CHAIN);
        let called = |first: &Node| first.then().host(|| ()).unwrap().into();
        assert_eq!(between(&context.graph().unwrap(), called), CHAIN);
        let nothing = |first: &Node| first.then().empty().unwrap().into();
        assert_eq!(between(&context.graph().unwrap(), nothing), (2, 0, 2));
    });
}

#[test]
fn an_opaque_node_comes_after_all_before_it_and_before_all_behind_it() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let increment = increment_all::load(&context).unwrap();
        let numbers: Vec<_> = (0..4).map(|_| stream.zeros::<u32>(N).unwrap()).collect();
        let graph = context.graph().unwrap();
        let mut last: Option<Node> = None;
        for round in 0..2 {
            for numbers in &numbers {
                let at = last.as_ref().map_or_else(|| graph.root(), Node::then);
                last = Some(at.launch(&increment, per(N, 32), (N as u32, numbers)).unwrap().into());
            }
            if round == 0 {
                last = last.map(|last| last.then().host(|| ()).unwrap().into());
            }
        }
        let mut exec = by_data(&graph);
        assert_eq!(figures(&exec), (4, 8, 4));
        let text = exec.shape_report().unwrap().to_string();
        assert!(text.contains("kept the order of 1 node: it is no kernel"), "{text}");
        exec.launch(&stream).unwrap();
        for numbers in &numbers {
            assert_eq!(numbers.read_blocking(&stream).unwrap(), [2; N]);
        }
    });
}
