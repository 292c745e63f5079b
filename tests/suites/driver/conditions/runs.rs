//! Runs of conditional nodes, and the values of their conditions.

use std::ptr::null_mut;

use cuda_sys::{CUdeviceptr, CUgraph};
use cuda_tests::needs;

use crate::common::*;

/// A word of the memory after the graph has run once. With that both of them end.
fn outcome(driver: &Session, graph: CUgraph, memory: CUdeviceptr, word: u64) -> u32 {
    let exec = driver.instantiate(graph);
    driver.run(exec);
    let value = driver.read(memory + 4 * word);
    driver.end(exec);
    driver.destroy(&[graph]);
    driver.free(memory);
    value
}

#[test]
fn the_value_chooses_the_body() {
    let driver = session();
    needs!(Branches);
    let address = driver.words(1);
    for (kind, size, value, ran) in [
        (IF, 1, 0, 0),
        (IF, 1, 1, 1),
        (IF, 1, u32::MAX, 1),
        (IF, 2, 7, 1),
        (IF, 2, 0, 16),
        (WHILE, 1, 0, 0),
        (SWITCH, 3, 0, 1),
        (SWITCH, 3, 2, 256),
        (SWITCH, 3, 3, 0),
        (SWITCH, 3, u32::MAX, 0),
    ] {
        let own = driver.graph();
        let handle = driver.condition(own, value);
        let (_, bodies) = driver.conditional(own, &[], handle, (kind, size));
        for (index, body) in bodies.iter().enumerate() {
            driver.kernel(*body, &[], "add", [address, 1 << (4 * index)]);
        }
        let exec = driver.instantiate(own);
        driver.write(address, 0);
        driver.run(exec);
        assert_eq!(driver.read(address), ran, "{kind:?} of {size} with {value}");
        driver.end(exec);
        driver.destroy(&[own]);
    }
    driver.free(address);
}

#[test]
fn loops_take_their_rounds() {
    let driver = session();
    needs!(Conditionals);
    let (own, address) = (driver.graph(), driver.words(2));
    let handle = driver.condition(own, 1);
    let start = driver.fill(own, &[], address, 5);
    let (_, bodies) = driver.conditional(own, &[start], handle, (WHILE, 1));
    let first = driver.kernel(bodies[0], &[], "add", [address + 4, 3]);
    driver.kernel(bodies[0], &[first], "count_down", [address, handle]);
    let exec = driver.instantiate(own);
    // Back to back, and on two streams.
    let mut other = null_mut();
    unsafe {
        assert_eq!(driver.cuStreamCreate(&mut other, 1), OK);
        for round in 0..6 {
            let stream = if round % 2 == 0 { driver.stream } else { other };
            assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        }
        driver.wait();
        assert_eq!(driver.cuStreamSynchronize(other), OK);
        assert_eq!(driver.cuStreamDestroy(other), OK);
    }
    assert_eq!(driver.read(address + 4), 6 * 5 * 3);
    driver.end(exec);
    driver.destroy(&[own]);
    driver.free(address);
}

#[test]
fn an_executable_needs_its_source_no_more() {
    let driver = session();
    needs!(Conditionals);
    let (own, address) = (driver.graph(), driver.words(1));
    let handle = driver.condition(own, 1);
    let (node, bodies) = driver.conditional(own, &[], handle, (IF, 1));
    driver.kernel(bodies[0], &[], "add", [address, 1]);
    let exec = driver.instantiate(own);
    assert_eq!(unsafe { driver.cuGraphDestroyNode(node) }, OK);
    driver.run(exec);
    driver.destroy(&[own]);
    driver.run(exec);
    assert_eq!(driver.read(address), 2);
    driver.end(exec);
    driver.free(address);
}

#[test]
fn without_a_default_to_assign_the_value_starts_at_0_and_stays() {
    let driver = session();
    needs!(Conditionals);
    let (own, address) = (driver.graph(), driver.words(1));
    let handle = driver.condition_with(own, 1, 0);
    let (node, bodies) = driver.conditional(own, &[], handle, (IF, 1));
    driver.kernel(bodies[0], &[], "add", [address, 1]);
    // It is set after the node has looked at it.
    driver.kernel(own, &[node], "set", [handle, 1]);
    let exec = driver.instantiate(own);
    driver.run(exec);
    assert_eq!(driver.read(address), 0);
    driver.run(exec);
    assert_eq!(driver.read(address), 1);
    driver.end(exec);
    // Over executables, too.
    let exec = driver.instantiate(own);
    driver.run(exec);
    assert_eq!(driver.read(address), 2);
    driver.end(exec);
    driver.destroy(&[own]);
    driver.free(address);
}

#[test]
fn a_default_is_assigned_by_each_launch() {
    let driver = session();
    needs!(Conditionals);
    let (own, address) = (driver.graph(), driver.words(1));
    let handle = driver.condition(own, 1);
    let (node, bodies) = driver.conditional(own, &[], handle, (IF, 1));
    driver.kernel(bodies[0], &[], "add", [address, 1]);
    driver.kernel(own, &[node], "set", [handle, 0]);
    let exec = driver.instantiate(own);
    for round in 1..=3 {
        driver.run(exec);
        assert_eq!(driver.read(address), round);
    }
    driver.end(exec);
    driver.destroy(&[own]);
    driver.free(address);
}

/// Three outer rounds of an inner loop of two: the inner condition is set `before` the inner loop,
/// or never but by its default.
fn nested(driver: &Session, sets: bool) -> u32 {
    let (own, address) = (driver.graph(), driver.words(3));
    let (left, inner_left, sum) = (address, address + 4, address + 8);
    let (outer, inner) = (driver.condition(own, 1), driver.condition(own, 1));
    let start = driver.fill(own, &[], left, 3);
    let (_, bodies) = driver.conditional(own, &[start], outer, (WHILE, 1));
    let mut before = vec![driver.fill(bodies[0], &[], inner_left, 2)];
    if sets {
        before.push(driver.kernel(bodies[0], &before, "set", [inner, 1]));
    }
    let (node, inside) = driver.conditional(bodies[0], &before[before.len() - 1..], inner, (WHILE, 1));
    let first = driver.kernel(inside[0], &[], "add", [sum, 1]);
    driver.kernel(inside[0], &[first], "count_down", [inner_left, inner]);
    driver.kernel(bodies[0], &[node], "count_down", [left, outer]);
    outcome(driver, own, address, 2)
}

#[test]
fn an_inner_default_is_assigned_once_a_launch() {
    let driver = session();
    needs!(Conditionals);
    assert_eq!(nested(&driver, true), 6);
    assert_eq!(nested(&driver, false), 2);
}

#[test]
fn a_body_sets_the_condition_of_a_later_node() {
    let driver = session();
    needs!(Conditionals);
    let (own, address) = (driver.graph(), driver.words(1));
    let (first, second) = (driver.condition(own, 1), driver.condition(own, 0));
    let (node, bodies) = driver.conditional(own, &[], first, (IF, 1));
    driver.kernel(bodies[0], &[], "set", [second, 1]);
    let (_, later) = driver.conditional(own, &[node], second, (IF, 1));
    driver.kernel(later[0], &[], "add", [address, 1]);
    assert_eq!(outcome(&driver, own, address, 0), 1);
}

#[test]
fn five_hundred_conditions_lie_in_each_other() {
    let driver = session();
    needs!(Conditionals);
    let (own, address) = (driver.graph(), driver.words(1));
    let mut place = own;
    for _ in 0..512 {
        let handle = driver.condition(own, 1);
        let (_, bodies) = driver.conditional(place, &[], handle, (IF, 1));
        driver.empty(bodies[0], &[]);
        place = bodies[0];
    }
    driver.kernel(place, &[], "add", [address, 1]);
    assert_eq!(outcome(&driver, own, address, 0), 1);
}

#[test]
fn a_child_of_a_body_runs_in_each_round() {
    let driver = session();
    needs!(Conditionals);
    let (own, inner, address) = (driver.graph(), driver.graph(), driver.words(2));
    driver.kernel(inner, &[], "add", [address + 4, 1]);
    let handle = driver.condition(own, 1);
    let start = driver.fill(own, &[], address, 4);
    let (_, bodies) = driver.conditional(own, &[start], handle, (WHILE, 1));
    assert_eq!(driver.child(bodies[0], inner).0, OK);
    driver.kernel(bodies[0], &[], "count_down", [address, handle]);
    assert_eq!(outcome(&driver, own, address, 1), 4);
    driver.destroy(&[inner]);
}
