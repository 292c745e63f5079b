//! Nodes that were added before, or in another way, count as added before the next one.

use cuda_graph::ContextExt;
use cuda_launch::per;
use cuda_tests::{no_leaks, setup};

use super::assert_waits;
use crate::capture::{N, add_to};

#[test]
fn nodes_of_before_are_taken_in() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let [x, y, z] = [0; 3].map(|_| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let first = graph.root().fill(&x, 1).unwrap();
        let over = first.then().fill(&x, 2).unwrap();
        let beside = graph.root().launch(&add, per(1, 1), (1, &y)).unwrap();
        let call = graph.root().host(|| ()).unwrap();
        let flow = graph.dataflow().unwrap();
        let read = flow.copy(&x, &z).unwrap();
        let added = flow.launch(&add, per(1, 1), (1, &y)).unwrap();
        assert_waits(&read, &[&over, &call]);
        assert_waits(&added, &[&beside, &call]);
        let opaque = flow.host(|| ()).unwrap();
        assert_waits(&opaque, &[&read, &added]);
    });
}

#[test]
fn nodes_that_are_added_changed_or_removed_meanwhile_are_taken_in() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let [x, y, z] = [0; 3].map(|_| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let flow = graph.dataflow().unwrap();
        let one = flow.fill(&x, 1).unwrap();
        let other = graph.root().fill(&y, 1).unwrap();
        let both = flow.copy(&x, &y).unwrap();
        assert_waits(&both, &[&one, &other]);
        let behind = one.then().copy(&x, &z).unwrap();
        let over = flow.fill(&x, 2).unwrap();
        assert_waits(&over, &[&both, &behind]);
        // The node writes other memory now.
        over.set(&z, 3).unwrap();
        let next = flow.copy(&z, &y).unwrap();
        // It also writes what `both` has written, and `over` waits for that.
        assert_waits(&next, &[&over]);
        next.remove().unwrap();
        let last = flow.fill(&y, 4).unwrap();
        assert_waits(&last, &[&both]);
        // Two dataflows of one graph know the same.
        let second = graph.dataflow().unwrap();
        drop(flow);
        let end = second.fill(&y, 5).unwrap();
        assert_waits(&end, &[&last]);
        drop(second);
        let fill = graph.root().fill(&y, 6).unwrap();
        let third = graph.dataflow().unwrap();
        assert_waits(&third.copy(&y, &z).unwrap(), &[&end, &fill, &over]);
    });
}

#[test]
fn a_clone_of_the_frontier_outlives_the_dataflow() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let flow = graph.dataflow().unwrap();
        let one = flow.fill(&x, 1).unwrap();
        let frontier = (*flow).clone();
        drop(flow);
        let two = frontier.fill(&x, 2).unwrap();
        let three = frontier.fill(&x, 3).unwrap();
        assert_waits(&two, &[&one]);
        assert_waits(&three, &[&two]);
    });
}

#[test]
fn graphs_that_other_code_knows_are_read_each_time() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let one = graph.root().fill(&x, 1).unwrap();
        graph.lend().unwrap();
        let flow = graph.dataflow().unwrap();
        let two = flow.fill(&x, 2).unwrap();
        let three = flow.fill(&x, 3).unwrap();
        assert_waits(&two, &[&one]);
        assert_waits(&three, &[&two]);
    });
}
