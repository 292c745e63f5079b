//! Nodes that wait for all, and for which all wait.

use cuda_graph::{ContextExt, Node, Test};
use cuda_launch::{params, per};
use cuda_tests::{kernel, needs, no_leaks, setup};

use super::assert_waits;
use crate::capture::{N, add_to};

#[test]
fn opaque_nodes_wait_for_all_and_all_wait_for_them() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let increment = kernel(&context, "increment");
        let event = context.event().unwrap();
        let [x, y] = [0; 2].map(|_| stream.zeros::<u32>(N).unwrap());
        let child = context.graph().unwrap();
        child.root().fill(&x, 1).unwrap();
        type Add<'a> = Box<dyn Fn(&cuda_graph::Frontier<'_>) -> Node + 'a>;
        let kinds: Vec<Add<'_>> = vec![
            Box::new(|at| {
                // SAFETY: the kernel increments the numbers that it is given.
                unsafe { at.launch_untyped(&increment, per(1, 1), params![&x, 1_u32]) }.unwrap().into()
            }),
            Box::new(|at| at.host(|| ()).unwrap().into()),
            Box::new(|at| at.record(&event).unwrap().into()),
            Box::new(|at| at.child(&child).unwrap().into()),
            Box::new(|at| at.empty().unwrap().into()),
        ];
        for kind in &kinds {
            let graph = context.graph().unwrap();
            let flow = graph.dataflow().unwrap();
            let one = flow.fill(&x, 1).unwrap();
            let two = flow.copy(&x, &y).unwrap();
            let three = flow.copy(x.slice(0..1).unwrap(), x.slice(1..2).unwrap()).unwrap();
            let opaque = kind(&flow);
            let again = kind(&flow);
            let behind = flow.fill(&y, 1).unwrap();
            let other = flow.fill(&x, 1).unwrap();
            assert_waits(&two, &[&one]);
            assert_waits(&three, &[&two]);
            assert_waits(&opaque, &[&three]);
            assert_waits(&again, &[&opaque]);
            assert_waits(&behind, &[&again]);
            assert_waits(&other, &[&again]);
            graph.instantiate().unwrap();
        }
    });
}

#[test]
fn nodes_with_graph_parameters_are_opaque() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let [x, y, z] = [0; 3].map(|_| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let param = graph.param(&x).unwrap();
        let flow = graph.dataflow().unwrap();
        let one = flow.fill(&y, 1).unwrap();
        let fill = flow.fill(&param, 2).unwrap();
        let two = flow.fill(&z, 1).unwrap();
        let launch = flow.launch(&add, per(1, 1), (1, &param)).unwrap();
        let last = flow.launch(&add, per(1, 1), (1, &y)).unwrap();
        assert_waits(&fill, &[&one]);
        assert_waits(&two, &[&fill]);
        assert_waits(&launch, &[&two]);
        assert_waits(&last, &[&launch]);
        let mut exec = graph.instantiate().unwrap();
        exec.launch_with(&stream, ((&param, &y),)).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap()[..2], [4, 2]);
    });
}

#[test]
fn loops_and_branches_take_the_place_of_all_that_they_consist_of() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let [x, y] = [0; 2].map(|_| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let flow = graph.dataflow().unwrap();
        flow.fill(&x, 3).unwrap();
        let beside = flow.fill(&y, 1).unwrap();
        let branch = flow
            .if_then(Test::nonzero(&x), |body| body.root().launch(&add, per(1, 1), (10, &y)).map(|_| ()))
            .unwrap();
        let behind = flow.launch(&add, per(1, 1), (100, &y)).unwrap();
        assert!(beside.successors().unwrap().iter().any(|node| node != &*behind));
        assert_waits(&behind, &[&branch]);
        drop(flow);
        assert!(graph.check().unwrap().is_clean());
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap()[0], 111);
    });
}
