//! Nodes that are apart stay apart: later values with which they would meet are refused.

use cuda_graph::{
    ContextExt, Error, Graph, InstantiateOptions, KernelNode, Meeting, Order, RefusalReason, UpdateError,
};
use cuda_handles::{Buffer, Image, Library};
use cuda_launch::{params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{fail, kernel, no_leaks, setup};

use super::{CONSTANT, by_data, figures};
use crate::capture::{N, add_to};
use crate::shape::first;

/// The names of the two nodes that would meet.
#[track_caller]
fn met<T>(refused: cuda_graph::Result<T>) -> (String, String) {
    match refused.map(drop) {
        Err(Error::Update(UpdateError::Meets { node, other, .. })) => {
            (node.into_string(), other.into_string())
        }
        other => panic!("{other:?}"),
    }
}

fn names(one: &str, two: &str) -> (String, String) {
    (one.to_owned(), two.to_owned())
}

/// Two launches in a row, each on the first element of a memory of its own.
fn two(graph: &Graph, add: &add_to, [x, y]: [&Buffer<u32>; 2]) -> [KernelNode; 2] {
    let one = graph.root().launch(add, per(1, 1), (1, x.slice(0..1).unwrap())).unwrap().named("one");
    let two = one.then().launch(add, per(1, 1), (10, y.slice(0..1).unwrap())).unwrap().named("two");
    [one, two]
}

#[test]
fn a_node_is_not_set_to_memory_of_one_that_it_is_apart_from() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let [x, y, z] = [0; 3].map(|_| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let [one, two] = two(&graph, &add, [&x, &y]);
        let mut exec = by_data(&graph);
        assert_eq!(figures(&exec), (2, 0, 2));
        let refused = exec.node(&one).set(&add, per(1, 1), (5, &y));
        let text = refused.as_ref().unwrap_err().to_string();
        assert!(text.contains("it would touch bytes of node `two`"), "{text}");
        assert_eq!(met(refused), names("one", "two"));
        // Other elements of the same memory are no obstacle.
        exec.node(&one).set(&add, per(1, 1), (5, y.slice(1..2).unwrap())).unwrap();
        // New parameters count from then on.
        exec.node(&two).set(&add, per(1, 1), (10, &z)).unwrap();
        exec.node(&one).set(&add, per(1, 1), (5, &y)).unwrap();
        assert_eq!(met(exec.node(&two).set(&add, per(1, 1), (10, &y))), names("two", "one"));
        // A kernel of which too little is known may touch anything.
        let increment = kernel(&context, "increment");
        // SAFETY: the kernel increments the numbers that it is given.
        let refused = unsafe { exec.node(&one).set_untyped(&increment, per(1, 1), params![&x, 1_u32]) };
        assert!(matches!(refused, Err(Error::Update(_))), "{refused:?}");
        exec.launch(&stream).unwrap();
        assert_eq!([&x, &y, &z].map(|numbers| first(numbers, &stream)), [0, 5, 10]);
    });
}

#[test]
fn a_node_of_which_too_little_would_be_known_is_refused() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let increment = kernel(&context, "increment");
        let [x, y] = [0; 2].map(|_| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let [one, two] = two(&graph, &add, [&x, &y]);
        let last = two.then().host(|| ()).unwrap();
        let behind = last.then().launch(&add, per(1, 1), (100, &x)).unwrap();
        let options = InstantiateOptions::new().order(Order::ByData).assume_progress();
        let mut exec = graph.instantiate_with(options).unwrap();
        // SAFETY: the kernel increments the numbers that it is given.
        let refused = unsafe { exec.node(&one).set_untyped(&increment, per(1, 1), params![&x, 1_u32]) };
        let is_unknown =
            matches!(&refused, Err(Error::Update(UpdateError::Meets { why: Meeting::Unknown, .. })));
        assert!(is_unknown, "{refused:?}");
        // This one is ordered with all others.
        // SAFETY: as above.
        unsafe { exec.node(&behind).set_untyped(&increment, per(1, 1), params![&x, 1_u32]) }.unwrap();
        exec.node(&behind).set(&add, per(1, 1), (1000, &y)).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!([&x, &y].map(|numbers| first(numbers, &stream)), [1, 1010]);
    });
}

#[test]
fn nodes_that_are_still_ordered_may_meet() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let [x, y] = [0; 2].map(|_| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(&x, 1).unwrap();
        let one = fill.then().launch(&add, per(1, 1), (1, &x)).unwrap();
        let other = one.then().fill(&y, 3).unwrap().named("other");
        // Unordered as drawn: their order is not the executable's.
        graph.root().fill(x.slice(4..8).unwrap(), 1).unwrap();
        let mut exec = by_data(&graph);
        exec.node(&fill).set(x.slice(0..2).unwrap(), 7).unwrap();
        exec.node(&one).set(&add, per(1, 1), (1, x.slice(4..5).unwrap())).unwrap();
        assert_eq!(met(exec.node(&other).set(x.slice(0..1).unwrap(), 3)).0, "other");
        exec.launch(&stream).unwrap();
        assert_eq!(first(&x, &stream), 7);
        // If nothing was left out, nothing is checked.
        let graph = context.graph().unwrap();
        let one = graph.root().fill(&x, 1).unwrap();
        let two = one.then().fill(&x, 2).unwrap();
        let mut exec = by_data(&graph);
        exec.node(&two).set(&y, 3).unwrap();
        exec.node(&one).set(&y, 1).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(first(&y, &stream), 3);
    });
}

#[test]
fn parameters_that_meet_are_refused_at_the_launch() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let [x, y, z] = [0; 3].map(|_| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let (left, right) = (graph.param(&x).unwrap(), graph.param(&y).unwrap());
        let one = graph.root().launch(&add, per(1, 1), (1, &left)).unwrap().named("one");
        let two = one.then().fill(&right, 10).unwrap().named("two");
        two.then().copy(&right, &z).unwrap().named("three");
        let mut exec = by_data(&graph);
        assert_eq!(figures(&exec), (2, 1, 2));
        exec.launch(&stream).unwrap();
        exec.set(&left, &y).unwrap();
        let met_by = met(exec.launch(&stream));
        assert_eq!(met_by.0, "one");
        // The next launch tries again, and refuses again.
        assert_eq!(met(exec.launch(&stream)), met_by);
        // All new values count together: the two change places.
        exec.set(&right, &x).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!([&x, &y, &z].map(|numbers| first(numbers, &stream)), [10, 11, 10]);
        exec.launch_with(&stream, ((&left, &x), (&right, &y))).unwrap();
        assert_eq!([&x, &y].map(|numbers| first(numbers, &stream)), [11, 10]);
        // After a driver's failure half-way, the values are checked again.
        let failure = fail(Call::cuGraphExecNodeSetParams, 2, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert!(exec.launch_with(&stream, ((&left, &y), (&right, &x))).is_err());
        assert!(failure.hit());
        drop(failure);
        exec.set(&right, &y).unwrap();
        assert_eq!(met(exec.launch(&stream)).0, "one");
        exec.set(&left, &x).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!([&x, &y].map(|numbers| first(numbers, &stream)), [12, 10]);
    });
}

#[test]
fn a_whole_update_with_values_that_meet_is_refused() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let [x, y, z] = [0; 3].map(|_| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let [one, two] = two(&graph, &add, [&x, &y]);
        let mut exec = by_data(&graph);
        one.set(&add, per(1, 1), (1, &y)).unwrap();
        let refused = exec.update(&graph).unwrap();
        let refusal = refused.refusal().unwrap();
        assert_eq!(refusal.reason, RefusalReason::Shaped);
        assert!(refusal.why.contains("`one`") && refusal.why.contains("`two`"), "{refusal}");
        exec.launch(&stream).unwrap();
        assert_eq!([&x, &y].map(|numbers| first(numbers, &stream)), [1, 10]);
        two.set(&add, per(1, 1), (10, &z)).unwrap();
        assert!(exec.update(&graph).unwrap().is_updated());
        // The new parameters count.
        assert_eq!(met(exec.node(&two).set(&add, per(1, 1), (1, &y))), names("two", "one"));
        exec.launch(&stream).unwrap();
        assert_eq!([&x, &y, &z].map(|numbers| first(numbers, &stream)), [1, 11, 10]);
        two.set(&add, per(1, 1), (10, &y)).unwrap();
        assert!(exec.update_or_rebuild(&graph).unwrap().is_some());
        assert_eq!(figures(&exec), (1, 1, 1));
        exec.launch(&stream).unwrap();
        assert_eq!(first(&y, &stream), 22);
    });
}

#[test]
fn values_go_on_after_a_constant_was_asked_for() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let library = Library::load(&context, Image::Ptx(CONSTANT)).unwrap();
        // SAFETY: the image has the same kernel.
        let add = unsafe { add_to::of(&library) }.unwrap();
        let numbers = [0; 2].map(|_| stream.zeros::<u32>(1).unwrap());
        let graph = context.graph().unwrap();
        let amount = graph.param(1_u32).unwrap();
        let one = graph.root().launch(&add, per(1, 1), (&amount, &numbers[0])).unwrap();
        one.then().launch(&add, per(1, 1), (&amount, &numbers[1])).unwrap();
        let mut exec = by_data(&graph);
        assert_eq!(exec.shape_report().unwrap().dropped_edges().len(), 1);
        exec.launch_with(&stream, ((&amount, 2_u32),)).unwrap();
        // SAFETY: nothing relies on the values.
        let table = unsafe { library.global::<u32>("table") }.unwrap();
        assert_eq!(table.read_blocking(&stream).unwrap(), [1, 2]);
        exec.launch_with(&stream, ((&amount, 3_u32),)).unwrap();
        assert_eq!(numbers.map(|numbers| numbers.read_blocking(&stream).unwrap()), [[5], [5]]);
    });
}

#[test]
fn a_check_of_an_update_sees_nodes_that_would_meet() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let [x, y] = [0; 2].map(|_| stream.zeros::<u32>(4).unwrap());
        let graph = context.graph().unwrap();
        let one = graph.root().fill(&x, 1).unwrap();
        let two = one.then().fill(&y, 2).unwrap();
        let mut exec = by_data(&graph);
        assert_eq!(exec.check_update(&graph).unwrap(), []);
        two.set(&x, 2).unwrap();
        let found = exec.check_update(&graph).unwrap();
        let outcome = exec.update(&graph).unwrap();
        assert_eq!(found, [outcome.refusal().unwrap().clone()]);
    });
}
