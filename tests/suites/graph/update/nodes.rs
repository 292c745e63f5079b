//! Updates of single nodes of an executable.

use cuda_graph::{ContextExt, Error, UpdateError};
use cuda_launch::per;
use cuda_tests::{Kind, SOON, live, no_leaks, setup, until};

use crate::capture::{N, add_to};

#[test]
fn a_node_is_set_for_later_launches_alone() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (first, second) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(&first, 1).unwrap();
        let copy = fill.then().copy(&first, &second).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        exec.node(&fill).set(&first, 2).unwrap();
        let third = stream.zeros::<u32>(N).unwrap();
        exec.node(&copy).set(&first, &third).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(second.read_blocking(&stream).unwrap(), [1; N]);
        assert_eq!(third.read_blocking(&stream).unwrap(), [2; N]);
        // The graph's own nodes are as before.
        assert_eq!(fill.value().unwrap(), 1);
        exec.node(&copy).set_enabled(false).unwrap();
        exec.node(&fill).set(&third, 5).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(third.read_blocking(&stream).unwrap(), [5; N]);
        let late = graph.root().fill(&first, 9).unwrap();
        let refused = exec.node(&late).set(&first, 1).unwrap_err();
        assert!(matches!(refused, Error::Update(UpdateError::NotInExecutable { .. })), "{refused}");
    });
}

#[test]
fn replays_with_a_new_buffer_each_are_flat_in_memory() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let total = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let node = graph.root().launch(&add, per(1, 1), (1, &total)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let before = live();
        for round in 0..2_000_u32 {
            let buffer = stream.zeros::<u32>(N).unwrap();
            exec.node(&node).set(&add, per(1, 1), (round, &buffer)).unwrap();
            exec.launch(&stream).unwrap();
            if round % 500 == 499 {
                assert_eq!(buffer.read_blocking(&stream).unwrap()[0], round);
            }
            drop(buffer);
            if round % 500 == 499 {
                let flat = until(SOON, || live().since(&before).of(Kind::Allocation) <= 66);
                assert!(flat, "after {round}: {}", live().since(&before));
            }
        }
        exec.release();
        let flat = until(SOON, || live().since(&before).of(Kind::Allocation) <= 1);
        assert!(flat, "{}", live().since(&before));
    });
}
