//! Captures with streams of two devices.

use cuda_graph::{CaptureError, ContextExt, Error, ParamError, StreamExt};
use cuda_handles::Error as HandleError;
use cuda_handles::capture::CaptureMode;
use cuda_launch::per;
use cuda_tests::on_two_devices;

use super::{LEN, N, Two, leaves_nothing, offset_copy};

const MODE: CaptureMode = CaptureMode::ThreadLocal;

#[test]
fn work_on_streams_of_both_devices_becomes_one_graph() {
    on_two_devices!();
    let two = Two::new();
    let ([near, far], [here, there]) = (&two.memory, &two.streams);
    leaves_nothing(|| {
        let graph = here
            .capture(MODE, |capture| {
                capture.fill(near, 1)?;
                there.wait_for(capture.stream())?;
                there.fill(far, 2)?;
                two.increments[1].launch(there, per(LEN, 32), (far, N))?;
                there.copy_peer(far, near)?;
                capture.stream().wait_for(there)?;
                two.increments[0].launch(capture.stream(), per(LEN, 32), (near, N))?;
                Ok::<_, Error>(())
            })
            .unwrap();
        assert_eq!(graph.len().unwrap(), 5);
        assert!(graph.contexts().eq([&*two.here, &two.there]));
        let mut exec = graph.instantiate().unwrap();
        let mut of_clone = graph.clone_graph().unwrap().instantiate().unwrap();
        for stream in [here, there] {
            for exec in [&mut exec, &mut of_clone] {
                exec.launch(stream).unwrap();
                stream.synchronize_blocking().unwrap();
                assert_eq!([two.first(0, near), two.first(1, far)], [4, 3]);
            }
        }
    });
}

#[test]
fn captured_nodes_come_into_a_graph_that_spans_their_contexts() {
    on_two_devices!();
    let two = Two::new();
    let ([near, far], [here, there]) = (&two.memory, &two.streams);
    let pooled = there.zeros::<u32>(LEN).unwrap();
    let record = |graph: &cuda_graph::Graph| {
        graph.root().capture(here, MODE, |capture| {
            there.wait_for(capture.stream())?;
            there.fill(&pooled, 6)?;
            there.copy(&pooled, far)?;
            there.copy_peer(&pooled, near)?;
            Ok::<_, Error>(capture.stream().wait_for(there)?)
        })
    };
    let alone = two.here.graph().unwrap();
    let error = record(&alone).unwrap_err();
    assert_eq!(error.to_string(), two.is_not_of_the_graph());
    assert!(alone.is_empty().unwrap());
    let graph = two.graph();
    record(&graph).unwrap();
    assert_eq!(graph.len().unwrap(), 3);
    graph.instantiate().unwrap().launch(here).unwrap();
    assert_eq!(two.first(0, near), 6);
}

#[test]
fn captured_kernels_reach_as_far_as_others() {
    on_two_devices!();
    let two = Two::new();
    let [near, far] = &two.memory;
    let adds = offset_copy::load(&two.here).unwrap();
    let pooled = two.streams[1].zeros::<u32>(LEN).unwrap();
    let record = |from| {
        two.streams[0].capture(MODE, |capture| {
            adds.launch(capture.stream(), per(LEN, 32), (from, near, 3, N)).map_err(Error::from)
        })
    };
    assert!(matches!(record(far), Err(Error::Launch(_))), "{:?}", record(far));
    assert!(matches!(record(&pooled), Err(Error::Launch(_))));
    two.reach();
    two.there.default_pool().unwrap().grant_access(two.here.device()).unwrap();
    for from in [far, &pooled] {
        let graph = record(from).unwrap();
        graph.instantiate().unwrap().launch(&two.streams[0]).unwrap();
        assert_eq!(two.first(0, near), 3);
    }
}

#[test]
fn what_a_capture_does_not_take_of_another_device_leaves_it_valid() {
    on_two_devices!();
    let two = Two::new();
    let ([near, far], [here, there]) = (&two.memory, &two.streams);
    let pools = [here, there].map(|stream| stream.zeros::<u32>(LEN).unwrap());
    let event = two.here.event().unwrap();
    two.reach();
    let wrong = |outcome: Result<(), HandleError>| {
        assert!(matches!(outcome, Err(HandleError::WrongContext(_))), "{outcome:?}");
    };
    let graph = here
        .capture(MODE, |capture| {
            let here = capture.stream();
            there.wait_for(here)?;
            // The driver takes these fills, and refuses their graph.
            wrong(here.fill(far, 1));
            wrong(there.fill(near, 1));
            wrong(there.record(&event));
            wrong(there.copy_peer(&pools[1], &pools[0]));
            there.fill(far, 9)?;
            here.wait_for(there)?;
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(graph.len().unwrap(), 1);
    graph.instantiate().unwrap().launch(there).unwrap();
    assert_eq!(two.first(1, far), 9);
}

#[test]
fn a_stream_of_another_device_is_joined_as_others_are() {
    on_two_devices!();
    let two = Two::new();
    let [here, there] = &two.streams;
    leaves_nothing(|| {
        let unjoined = here.capture(MODE, |capture| {
            there.wait_for(capture.stream())?;
            there.fill(&two.memory[1], 1)?;
            Ok::<_, Error>(())
        });
        let unjoined = unjoined.unwrap_err();
        assert!(
            matches!(
                &unjoined,
                Error::Handles(HandleError::CaptureUnjoined { .. })
                    | Error::Capture(CaptureError::Unjoined { .. })
            ),
            "{unjoined:?}"
        );
        // Both streams work again.
        for (stream, memory) in two.streams.iter().zip(&two.memory) {
            stream.fill(memory, 7).unwrap();
            stream.synchronize_blocking().unwrap();
        }
    });
}

#[test]
fn a_capture_into_a_graph_begins_on_a_stream_of_its_contexts() {
    on_two_devices!();
    let two = Two::new();
    let ([near, far], [here, there]) = (&two.memory, &two.streams);
    let alone = two.here.graph().unwrap();
    let error = alone.root().capture(there, MODE, |_| -> Result<(), Error> { panic!("it does not begin") });
    assert_eq!(error.unwrap_err().to_string(), two.is_not_of_the_graph());
    assert!(there.capture_id().is_none() && alone.is_empty().unwrap());
    let graph = two.graph();
    graph
        .root()
        .capture(there, MODE, |capture| {
            capture.launch(&two.increments[1], per(LEN, 32), (far, N))?;
            there.copy_peer(far, near)?;
            Ok::<_, Error>(())
        })
        .unwrap();
    graph.instantiate().unwrap().launch(here).unwrap();
    assert_eq!(two.first(0, near), 1);
}

#[test]
fn parameters_of_a_capture_are_memory_of_its_graphs_home() {
    on_two_devices!();
    let two = Two::new();
    let ([near, far], there) = (&two.memory, &two.streams[1]);
    two.there.enable_peer_access(&two.here).unwrap();
    let graph = two.graph();
    let early = graph.param(near).unwrap();
    graph
        .root()
        .capture(there, MODE, |capture| {
            let refused = capture.param(far).unwrap_err();
            assert!(matches!(refused, Error::Handles(HandleError::WrongContext(_))), "{refused:?}");
            for param in [&early, &capture.param(near)?] {
                let outcome = capture.launch(&two.increments[1], per(LEN, 32), (param, N));
                assert!(
                    matches!(outcome, Err(Error::Param(ParamError::MemoryElsewhere { .. }))),
                    "{outcome:?}"
                );
            }
            let count = capture.param(N)?;
            capture.launch(&two.increments[1], per(LEN, 32), (far, &count))
        })
        .unwrap();
    assert_eq!(graph.len().unwrap(), 1);
}
