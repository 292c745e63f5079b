//! Executables with conditional nodes: nodes of their bodies set one by one, and whole updates.

use std::ptr::null_mut;

use crate::common::*;
use cuda_sys::*;

#[test]
fn nodes_of_a_body_are_set_one_by_one() {
    let driver = session();
    cuda_tests::needs!(Conditionals);
    let (own, address) = (driver.graph(), driver.words(3));
    let handle = driver.condition(own, 1);
    let start = driver.fill(own, &[], address, 2);
    let (_, bodies) = driver.conditional(own, &[start], handle, (WHILE, 1));
    let add = driver.kernel(bodies[0], &[], "add", [address + 4, 1]);
    let fill = driver.fill(bodies[0], &[], address + 8, 7);
    driver.kernel(bodies[0], &[add], "count_down", [address, handle]);
    let exec = driver.instantiate(own);
    driver.run(exec);
    assert_eq!((driver.read(address + 4), driver.read(address + 8)), (2, 7));
    assert_eq!(driver.set_kernel(exec, add, "add", [address + 4, 10]), OK);
    unsafe {
        let params = fill_params(address + 8, 9);
        assert_eq!(driver.cuGraphExecMemsetNodeSetParams(exec, fill, &params, driver.context), OK);
    }
    driver.run(exec);
    assert_eq!((driver.read(address + 4), driver.read(address + 8)), (22, 9));
    unsafe {
        let mut enabled = 0;
        assert_eq!(driver.cuGraphNodeGetEnabled(exec, add, &mut enabled), OK);
        assert_eq!(enabled, 1);
        assert_eq!(driver.cuGraphNodeSetEnabled(exec, add, 0), OK);
    }
    driver.run(exec);
    assert_eq!(driver.read(address + 4), 22);
    driver.end(exec);
    driver.destroy(&[own]);
    driver.free(address);
}

/// A graph with one conditional node whose body adds `value`.
fn branch(
    driver: &Session,
    address: u64,
    kind: (Kind, u32),
    default: u32,
    value: u64,
) -> (CUgraph, CUgraphNode) {
    let own = driver.graph();
    let handle = driver.condition(own, default);
    let (node, bodies) = driver.conditional(own, &[], handle, kind);
    driver.kernel(bodies[0], &[], "add", [address, value]);
    (own, node)
}

#[test]
fn a_whole_update_carries_bodies_and_defaults() {
    let driver = session();
    cuda_tests::needs!(Conditionals);
    let address = driver.words(1);
    let (own, _) = branch(&driver, address, (IF, 1), 1, 1);
    let exec = driver.instantiate(own);
    driver.run(exec);
    assert_eq!(driver.read(address), 1);
    // One that has an executable of its own serves as well.
    let (next, _) = branch(&driver, address, (IF, 1), 1, 10);
    let second = driver.instantiate(next);
    assert_eq!(driver.update(exec, next), (OK, 0, null_mut()));
    driver.run(exec);
    assert_eq!(driver.read(address), 11);
    let (last, _) = branch(&driver, address, (IF, 1), 0, 100);
    assert_eq!(driver.update(exec, last), (OK, 0, null_mut()));
    driver.run(exec);
    assert_eq!(driver.read(address), 11);
    driver.end(exec);
    driver.end(second);
    driver.destroy(&[own, next, last]);
    driver.free(address);
}

#[test]
fn updates_that_change_a_conditional_are_refused() {
    let driver = session();
    cuda_tests::needs!(Conditionals);
    let address = driver.words(1);
    let (own, _) = branch(&driver, address, (IF, 1), 1, 1);
    let exec = driver.instantiate(own);
    let mut made = Vec::new();
    if driver.has(12, 8) {
        for kind in [(IF, 2), (SWITCH, 1)] {
            let (other, node) = branch(&driver, address, kind, 1, 9);
            assert_eq!(driver.update(exec, other), (UPDATE_FAILED, 6, node), "{kind:?}");
            made.push(other);
        }
    }
    let (other, node) = branch(&driver, address, (WHILE, 1), 0, 9);
    assert_eq!(driver.update(exec, other), (UPDATE_FAILED, 6, node));
    made.push(other);
    // Another number.
    let other = driver.graph();
    let unused = driver.condition(other, 1);
    let handle = driver.condition(other, 1);
    let (node, bodies) = driver.conditional(other, &[], handle, (IF, 1));
    driver.kernel(bodies[0], &[], "add", [address, 9]);
    assert_ne!(unused, handle);
    assert_eq!(driver.update(exec, other), (UPDATE_FAILED, 6, node));
    made.push(other);
    // Another number of nodes in the body, and another type of node there.
    let other = driver.graph();
    let handle = driver.condition(other, 1);
    let (_, bodies) = driver.conditional(other, &[], handle, (IF, 1));
    driver.kernel(bodies[0], &[], "add", [address, 9]);
    driver.empty(bodies[0], &[]);
    assert_eq!(driver.update(exec, other), (UPDATE_FAILED, 2, null_mut()));
    made.push(other);
    let other = driver.graph();
    let handle = driver.condition(other, 1);
    let (_, bodies) = driver.conditional(other, &[], handle, (IF, 1));
    let node = driver.fill(bodies[0], &[], address, 9);
    assert_eq!(driver.update(exec, other), (UPDATE_FAILED, 3, node));
    made.push(other);
    driver.run(exec);
    assert_eq!(driver.read(address), 1);
    driver.end(exec);
    driver.destroy(&made);
    driver.destroy(&[own]);
    driver.free(address);
}

#[test]
fn queued_loops_keep_their_values() {
    let driver = session();
    cuda_tests::needs!(Conditionals);
    let (own, address) = (driver.graph(), driver.words(2));
    let handle = driver.condition(own, 1);
    let start = driver.fill(own, &[], address, 3);
    let (_, bodies) = driver.conditional(own, &[start], handle, (WHILE, 1));
    let add = driver.kernel(bodies[0], &[], "add", [address + 4, 0]);
    driver.kernel(bodies[0], &[add], "count_down", [address, handle]);
    let exec = driver.instantiate(own);
    let gate = Gate::close(&driver, driver.stream);
    for value in [1, 10, 100] {
        assert_eq!(driver.set_kernel(exec, add, "add", [address + 4, value]), OK);
        assert_eq!(driver.launch(exec), OK);
    }
    gate.open();
    driver.wait();
    assert_eq!(driver.read(address + 4), 333);
    driver.end(exec);
    driver.destroy(&[own]);
    driver.free(address);
}
