//! Graph parameters that are events.

use cuda_graph::{ContextExt, Error, ParamError};
use cuda_handles::Error as HandleError;
use cuda_tests::{alone, count, needs, no_leaks, other_device, setup};

use crate::common::events::{ensure_held_up, is_captured, record_in_capture};

#[test]
fn each_launch_records_the_event_that_was_set() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (first, second) = (context.event().unwrap(), context.event().unwrap());
        let words = stream.zeros::<u32>(64).unwrap();
        let graph = context.graph().unwrap();
        let done = graph.param(&first).unwrap();
        let fill = graph.root().fill(&words, 3).unwrap();
        let record = fill.then().record(&done).unwrap();
        let by_hand = record.set_event(&second).unwrap_err();
        assert!(matches!(by_hand, Error::Param(ParamError::Bound { .. })), "{by_hand}");
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert!(matches!(second.elapsed_since(&first), Err(HandleError::NoTime(_))));
        let ((), calls) = count(|| exec.launch_with(&stream, ((&done, &second),)).unwrap());
        calls.assert_calls(&[("cuGraphExecNodeSetParams", 1), ("cuGraphLaunch", 1)]);
        stream.synchronize_blocking().unwrap();
        assert!(second.elapsed_since(&first).is_ok());
        // Another stream waits for the point inside of the graph.
        let other = context.stream().unwrap();
        stream.clear(&words).unwrap();
        exec.launch(&stream).unwrap();
        other.wait(&second).unwrap();
        assert_eq!(words.read_blocking(&other).unwrap(), [3; 64]);
    });
}

#[test]
fn a_launch_tells_the_event_that_was_set_that_it_is_recorded() {
    let context = setup();
    no_leaks(|| {
        let (stream, event) = (context.stream().unwrap(), context.event().unwrap());
        let graph = context.graph().unwrap();
        let done = graph.param(&context.event().unwrap()).unwrap();
        graph.root().record(&done).unwrap();
        let mut exec = graph.instantiate().unwrap();
        record_in_capture(&event, &stream);
        exec.launch_with(&stream, ((&done, &event),)).unwrap();
        stream.synchronize_blocking().unwrap();
        assert!(!is_captured(&event));
        drop((exec, graph, done));
        assert!(!is_captured(&event));
    });
}

#[test]
fn a_wait_is_for_the_event_that_was_set() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (never, event) = (context.event().unwrap(), context.event().unwrap());
        let words = stream.zeros::<u32>(64).unwrap();
        let graph = context.graph().unwrap();
        let before = graph.param(&never).unwrap();
        let wait = graph.root().wait(&before).unwrap();
        wait.then().fill(&words, 5).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(words.read_blocking(&stream).unwrap(), [5; 64]);
        stream.clear(&words).unwrap();
        stream.synchronize_blocking().unwrap();
        ensure_held_up(&event, &stream, || exec.launch_with(&stream, ((&before, &event),)).unwrap());
        assert_eq!(words.read_blocking(&stream).unwrap(), [5; 64]);
    });
}

#[test]
fn an_event_of_another_context_is_not_recorded() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let far = other_device().context().unwrap();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (event, far_event) = (context.event().unwrap(), far.event().unwrap());
        let graph = context.graph().unwrap();
        let done = graph.param(&event).unwrap();
        graph.root().record(&done).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let refused = exec.launch_with(&stream, ((&done, &far_event),)).unwrap_err();
        assert!(matches!(refused, Error::Handles(HandleError::WrongContext { .. })), "{refused}");
        exec.launch_with(&stream, ((&done, &event),)).unwrap();
        stream.synchronize_blocking().unwrap();
    });
}
