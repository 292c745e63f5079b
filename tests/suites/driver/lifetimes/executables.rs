//! The destruction of an executable, and what it waits for.

use std::ptr::null_mut;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use cuda_sys::*;
use cuda_tests::needs;

use crate::common::*;

/// How long a stream is held, unless the call that is tried returns before.
const HELD: Duration = Duration::from_secs(1);

/// A graph with a conditional node, or with an empty one.
fn graph(driver: &Session, has_condition: bool) -> CUgraph {
    let own = driver.graph();
    if has_condition {
        let handle = driver.condition(own, 0);
        let (_, bodies) = driver.conditional(own, &[], handle, (IF, 1));
        // Drivers before 12.8 want something there.
        driver.empty(bodies[0], &[]);
    } else {
        driver.empty(own, &[]);
    }
    own
}

/// Destroys an executable while the gate is closed: whether the call waited for that. Then the gate
/// is open.
fn waits(driver: &Session, exec: CUgraphExec, gate: Gate) -> bool {
    let (returned, news) = channel();
    let opener = thread::spawn(move || {
        let waited = news.recv_timeout(HELD).is_err();
        gate.open();
        waited
    });
    driver.end(exec);
    let _ = returned.send(());
    opener.join().unwrap()
}

#[test]
fn one_with_conditional_nodes_waits_for_all_work_of_the_context() {
    let (driver, mut other) = (session(), null_mut());
    needs!(Conditionals);
    assert_eq!(unsafe { driver.cuStreamCreate(&mut other, 1) }, OK);
    let wait = |stream| assert_eq!(unsafe { driver.cuStreamSynchronize(stream) }, OK);
    for has_condition in [false, true] {
        let own = graph(&driver, has_condition);
        // Its own launches are over in each case.
        for (what, streams, held) in [
            ("never launched", &[][..], driver.stream),
            ("there", &[driver.stream], driver.stream),
            ("on another stream", &[driver.stream], other),
            ("there at last", &[other, driver.stream], driver.stream),
            ("there at first", &[other, driver.stream], other),
        ] {
            let exec = driver.instantiate(own);
            for stream in streams {
                assert_eq!(unsafe { driver.cuGraphLaunch(exec, *stream) }, OK);
                wait(*stream);
            }
            let waited = waits(&driver, exec, Gate::close(&driver, held));
            assert_eq!(waited, has_condition, "{what}, has a condition: {has_condition}");
            wait(held);
        }
        driver.destroy(&[own]);
    }
    assert_eq!(unsafe { driver.cuStreamDestroy(other) }, OK);
}

#[test]
fn one_with_conditional_nodes_waits_for_its_own_launch() {
    let driver = session();
    needs!(Conditionals);
    for has_condition in [false, true] {
        let own = graph(&driver, has_condition);
        let exec = driver.instantiate(own);
        let gate = Gate::close(&driver, driver.stream);
        assert_eq!(driver.launch(exec), OK);
        assert_eq!(waits(&driver, exec, gate), has_condition);
        driver.wait();
        driver.destroy(&[own]);
    }
}
