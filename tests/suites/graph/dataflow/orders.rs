//! Which nodes a node waits for.

use cuda_graph::{ContextExt, Graph};
use cuda_launch::per;
use cuda_tests::{count, needs, no_leaks, setup};

use super::assert_waits;
use crate::capture::{N, add_to, set_to};

#[test]
fn nodes_wait_for_what_they_read_and_for_what_reads_what_they_write() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let [x, y, z] = [0; 3].map(|_| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let flow = graph.dataflow().unwrap();
        let write = flow.fill(&x, 1).unwrap();
        let other = flow.fill(&y, 2).unwrap();
        let read = flow.copy(&x, &z).unwrap();
        let second = flow.copy(x.slice(0..8).unwrap(), y.slice(0..8).unwrap()).unwrap();
        let over = flow.fill(&x, 3).unwrap();
        let part = flow.fill(x.slice(8..).unwrap(), 4).unwrap();
        let rest = flow.fill(x.slice(0..8).unwrap(), 5).unwrap();
        let all = flow.copy(&x, &z).unwrap();
        assert_waits(&write, &[]);
        assert_waits(&other, &[]);
        assert_waits(&read, &[&write]);
        assert_waits(&second, &[&write, &other]);
        assert_waits(&over, &[&read, &second]);
        assert_waits(&part, &[&over]);
        assert_waits(&rest, &[&over]);
        assert_waits(&all, &[&part, &rest]);
        assert!(graph.check().unwrap().is_clean());
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(z.read_blocking(&stream).unwrap(), [[5; 8], [4; 8]].concat());
    });
}

#[test]
fn sequences_become_parallel_chains() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let numbers: Vec<_> = (0..4).map(|_| stream.zeros::<u32>(N).unwrap()).collect();
        let graph = context.graph().unwrap();
        let flow = graph.dataflow().unwrap();
        for _ in 0..5 {
            for numbers in &numbers {
                flow.launch(&add, per(1, 1), (1, numbers)).unwrap();
            }
        }
        drop(flow);
        assert_eq!(graph.edges().unwrap().len(), 16);
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        for numbers in &numbers {
            assert_eq!(numbers.read_blocking(&stream).unwrap()[0], 5);
        }
    });
}

#[test]
fn setting_a_condition_counts_as_writing_it() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let set = set_to::load(&context).unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph: Graph = context.graph().unwrap();
        let (one, other) = (graph.condition().unwrap(), graph.condition().unwrap());
        let flow = graph.dataflow().unwrap();
        let first = flow.launch(&set, per(1, 1), (0, &one)).unwrap();
        let beside = flow.launch(&set, per(1, 1), (1, &other)).unwrap();
        let second = flow.launch(&set, per(1, 1), (1, &one)).unwrap();
        let fill = flow.fill(&numbers, 1).unwrap();
        let branch = flow.if_node(&one).unwrap();
        branch.body().unwrap().root().fill(&numbers, 2).unwrap();
        let last = flow.if_node(&other).unwrap();
        let body = last.body().unwrap();
        let inside = body.dataflow().unwrap();
        let a = inside.fill(numbers.slice(0..4).unwrap(), 3).unwrap();
        let b = inside.fill(numbers.slice(4..8).unwrap(), 4).unwrap();
        let c = inside.fill(numbers.slice(3..5).unwrap(), 5).unwrap();
        drop(inside);
        assert_waits(&first, &[]);
        assert_waits(&beside, &[]);
        assert_waits(&second, &[&first]);
        assert_waits(&fill, &[]);
        assert_waits(&branch, &[&second, &beside, &fill]);
        assert_waits(&last, &[&branch]);
        assert_waits(&a, &[]);
        assert_waits(&b, &[]);
        assert_waits(&c, &[&a, &b]);
        drop(flow);
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(numbers.read_blocking(&stream).unwrap()[..9], [3, 3, 3, 5, 5, 4, 4, 4, 2]);
        drop((exec, one, other));
    });
}

#[test]
fn an_add_to_a_dataflow_is_one_driver_call() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let flow = graph.dataflow().unwrap();
        flow.launch(&add, per(1, 1), (1, &numbers)).unwrap();
        let (added, cost) = count(|| flow.launch(&add, per(1, 1), (1, &numbers)));
        added.unwrap();
        cost.assert_calls(&[("cuGraphAddNode", 1)]);
    });
}
