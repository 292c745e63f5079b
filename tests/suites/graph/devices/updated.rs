//! Updates of executables of two devices.

use cuda_graph::{Error, UpdateError};
use cuda_launch::per;
use cuda_tests::on_two_devices;

use super::{LEN, N, Two, leaves_nothing};

#[test]
fn nodes_of_both_devices_are_updated_on_theirs() {
    on_two_devices!();
    let two = Two::new();
    let [near, far] = &two.memory;
    leaves_nothing(|| {
        let graph = two.graph();
        let fill = graph.root().fill(far, 1).unwrap();
        let step = fill.then().launch(&two.increments[1], per(LEN, 32), (far, N)).unwrap();
        let copy = step.then().copy(far, near).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let (other_far, other_near) = (two.more(1), two.more(0));
        exec.launch(&two.streams[0]).unwrap();
        exec.node(&fill).set(&other_far, 10).unwrap();
        exec.node(&step).set(&two.increments[1], per(LEN, 32), (&other_far, N)).unwrap();
        exec.node(&copy).set(&other_far, &other_near).unwrap();
        exec.launch(&two.streams[1]).unwrap();
        two.streams[1].synchronize_blocking().unwrap();
        assert_eq!([two.first(0, near), two.first(0, &other_near), two.first(1, far)], [2, 11, 2]);
        // The graph's own nodes follow as well, and a whole update takes them over.
        fill.set(&other_far, 20).unwrap();
        step.set(&two.increments[1], per(LEN, 32), (&other_far, N)).unwrap();
        copy.set(&other_far, &other_near).unwrap();
        assert!(exec.update(&graph).unwrap().is_updated());
        exec.launch(&two.streams[1]).unwrap();
        two.streams[1].synchronize_blocking().unwrap();
        assert_eq!(two.first(0, &other_near), 21);
    });
}

#[test]
fn an_executables_nodes_stay_on_their_devices() {
    on_two_devices!();
    let two = Two::new();
    let [near, far] = &two.memory;
    let events = [two.here.event().unwrap(), two.there.event().unwrap()];
    let graph = two.graph();
    let fill = graph.root().fill(far, 1).unwrap();
    let step = fill.then().launch(&two.increments[1], per(LEN, 32), (far, N)).unwrap();
    let copy = step.then().copy(far, near).unwrap();
    let record = copy.then().record(&events[1]).unwrap();
    let mut exec = graph.instantiate().unwrap();
    let stays = |outcome: Result<(), Error>| {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Update(UpdateError::NotPossible { .. })), "{error:?}");
        assert!(error.to_string().contains("stays on its device"), "{error}");
    };
    stays(exec.node(&fill).set(near, 1));
    stays(exec.node(&step).set(&two.increments[0], per(LEN, 32), (near, N)));
    stays(exec.node(&copy).set(near, far));
    stays(exec.node(&copy).set(&two.more(0), near));
    stays(exec.node(&record).set_event(&events[0]));
    // The graph takes all of it, and executables made from then on.
    fill.set(near, 1).unwrap();
    step.set(&two.increments[0], per(LEN, 32), (near, N)).unwrap();
    copy.set(near, far).unwrap();
    record.set_event(&events[0]).unwrap();
    let update = exec.update(&graph);
    assert!(update.as_ref().is_ok_and(|update| !update.is_updated()), "{update:?}");
    exec.launch(&two.streams[0]).unwrap();
    two.streams[0].synchronize_blocking().unwrap();
    assert_eq!(two.first(0, near), 2);
    let mut moved = graph.instantiate().unwrap();
    moved.launch(&two.streams[1]).unwrap();
    two.streams[1].synchronize_blocking().unwrap();
    assert_eq!([two.first(0, near), two.first(1, far)], [2, 2]);
}
