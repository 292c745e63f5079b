//! Updates of executables with conditional nodes: single nodes of bodies, and whole graphs.

use std::ptr::null_mut;

use crate::common::table::{Table, said};
use crate::common::*;
use cuda_sys::*;
use cuda_tests::needs;

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

/// A graph of one conditional node for each number: it reads the condition that was made as that
/// one. The kinds say which nodes are loops.
fn several(driver: &Session, numbers: &[usize], loops: &[bool]) -> (CUgraph, Vec<CUgraphNode>) {
    let own = driver.graph();
    let handles: Vec<u64> = numbers.iter().map(|_| driver.condition(own, 0)).collect();
    let node = |(number, is_loop): (&usize, &bool)| {
        let kind = if *is_loop { WHILE } else { IF };
        let (node, bodies) = driver.conditional(own, &[], handles[*number], (kind, 1));
        driver.empty(bodies[0], &[]);
        node
    };
    let nodes = numbers.iter().zip(loops).map(node).collect();
    (own, nodes)
}

#[test]
fn the_last_of_several_that_differ_is_named() {
    let driver = session();
    needs!(Conditionals);
    let mut table = Table::default();
    let mut row = |numbers: &[usize], loops: &[bool]| {
        let count = numbers.len();
        let (own, _) = several(&driver, &(0..count).collect::<Vec<_>>(), &vec![false; count]);
        let (next, nodes) = several(&driver, numbers, loops);
        let exec = driver.instantiate(own);
        let (answer, result, node) = driver.update(exec, next);
        let place = nodes.iter().position(|other| *other == node);
        table.row(
            format!("conditions {numbers:?}, loops {loops:?}"),
            format!("{} {result}, node {place:?}", said(answer)),
        );
        driver.end(exec);
        driver.destroy(&[own, next]);
    };
    for numbers in [&[1, 0][..], &[0, 2, 1], &[2, 1, 0], &[1, 2, 0], &[1, 0, 2]] {
        row(numbers, &vec![false; numbers.len()]);
    }
    row(&[0, 1, 2], &[true, true, false]);
    row(&[0, 1, 2], &[true, true, true]);
    table.is(NAMED);
}

const NAMED: &str = "
conditions [1, 0], loops [false, false]: GRAPH_EXEC_UPDATE_FAILURE 6, node Some(1)
conditions [0, 2, 1], loops [false, false, false]: GRAPH_EXEC_UPDATE_FAILURE 6, node Some(2)
conditions [2, 1, 0], loops [false, false, false]: GRAPH_EXEC_UPDATE_FAILURE 6, node Some(2)
conditions [1, 2, 0], loops [false, false, false]: GRAPH_EXEC_UPDATE_FAILURE 6, node Some(2)
conditions [1, 0, 2], loops [false, false, false]: GRAPH_EXEC_UPDATE_FAILURE 6, node Some(1)
conditions [0, 1, 2], loops [true, true, false]: GRAPH_EXEC_UPDATE_FAILURE 6, node Some(1)
conditions [0, 1, 2], loops [true, true, true]: GRAPH_EXEC_UPDATE_FAILURE 6, node Some(2)
";

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

/// A graph with a conditional node whose body adds a number, and a kernel behind it that sets the
/// condition if it should.
fn kept(driver: &Session, address: u64, (default, flags): (u32, u32), value: u64, sets: u64) -> CUgraph {
    let own = driver.graph();
    let handle = driver.condition_with(own, default, flags);
    let (node, bodies) = driver.conditional(own, &[], handle, (IF, 1));
    driver.kernel(bodies[0], &[], "add", [address, value]);
    driver.kernel(own, &[node], "set", [handle, sets]);
    own
}

#[test]
fn a_whole_update_and_the_values_of_conditions() {
    let driver = session();
    needs!(Conditionals);
    let (mut table, address) = (Table::default(), driver.words(1));
    // The value that a run adds to the word.
    let adds = |exec| {
        driver.write(address, 0);
        driver.run(exec);
        driver.read(address)
    };
    // Each default with its flag.
    let defaults = [("no default", (7, 0)), ("a default of 1", (1, 1)), ("a default of 0", (0, 1))];
    let pairs = || defaults.iter().flat_map(|old| defaults.iter().map(move |new| (*old, *new)));
    // The value that the condition of each graph has when they meet.
    for (own_value, next_value) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for ((was, old), (is, new)) in pairs() {
            let what = format!("{was}, to {is}");
            let own = kept(&driver, address, old, 1, own_value);
            let next = kept(&driver, address, new, 10, next_value);
            let exec = driver.instantiate(own);
            adds(exec);
            let other = driver.instantiate(next);
            adds(other);
            driver.end(other);
            let (answer, result, _) = driver.update(exec, next);
            let later = [adds(exec), adds(exec)];
            driver.end(exec);
            // And what the graphs have then.
            let seen = [own, next].map(|graph| {
                let anew = driver.instantiate(graph);
                let seen = adds(anew);
                driver.end(anew);
                seen
            });
            table.row(
                format!("{own_value} and {next_value}, {what}"),
                format!(
                    "{} {result}, adds {later:?}; the old graph {}, the new {}",
                    said(answer),
                    seen[0],
                    seen[1]
                ),
            );
            driver.destroy(&[own, next]);
        }
    }
    driver.free(address);
    table.is(VALUES);
}

/// How the values of executables of several graphs hang together; none of the conditions has a
/// default.
#[test]
fn values_of_conditions_over_executables_of_several_graphs() {
    let driver = session();
    needs!(Conditionals);
    let (mut table, address) = (Table::default(), driver.words(1));
    let adds = |exec| {
        driver.write(address, 0);
        driver.run(exec);
        driver.read(address)
    };
    let sets = |value| kept(&driver, address, (7, 0), 1, value);
    let (one, zero, other) = (sets(1), sets(0), sets(1));
    let first = driver.instantiate(one);
    table.row("the first graph's, which sets 1", format!("{:?}", [adds(first), adds(first)]));
    let second = driver.instantiate(zero);
    table.row("the second's beside it, which sets 0", format!("{:?}", [adds(second), adds(second)]));
    table.row("the first again", adds(first));
    driver.end(first);
    let third = driver.instantiate(other);
    table.row("a third graph's, after the end of the first", adds(third));
    driver.end(second);
    let first = driver.instantiate(one);
    table.row("the first graph's anew, after the end of the second", adds(first));
    driver.end(third);
    driver.end(first);
    let second = driver.instantiate(zero);
    table.row("the second's anew, once all are gone", adds(second));
    driver.end(second);
    driver.destroy(&[one, zero, other]);
    driver.free(address);
    table.is(LEFT);
}

/// Of these no row was seen on a GPU.
const LEFT: &str = "
the first graph's, which sets 1: [0, 1]
the second's beside it, which sets 0: [0, 0]
the first again: 1
a third graph's, after the end of the first: 1
the first graph's anew, after the end of the second: 0
the second's anew, once all are gone: 1
";

const VALUES: &str = "
0 and 0, no default, to no default: ok 0, adds [0, 0]; the old graph 0, the new 0
0 and 0, no default, to a default of 1: ok 0, adds [10, 10]; the old graph 0, the new 10
0 and 0, no default, to a default of 0: ok 0, adds [0, 0]; the old graph 0, the new 0
0 and 0, a default of 1, to no default: ok 0, adds [0, 0]; the old graph 1, the new 0
0 and 0, a default of 1, to a default of 1: ok 0, adds [10, 10]; the old graph 1, the new 10
0 and 0, a default of 1, to a default of 0: ok 0, adds [0, 0]; the old graph 1, the new 0
0 and 0, a default of 0, to no default: ok 0, adds [0, 0]; the old graph 0, the new 0
0 and 0, a default of 0, to a default of 1: ok 0, adds [10, 10]; the old graph 0, the new 10
0 and 0, a default of 0, to a default of 0: ok 0, adds [0, 0]; the old graph 0, the new 0
0 and 1, no default, to no default: ok 0, adds [0, 10]; the old graph 1, the new 0
0 and 1, no default, to a default of 1: ok 0, adds [10, 10]; the old graph 1, the new 10
0 and 1, no default, to a default of 0: ok 0, adds [0, 0]; the old graph 1, the new 0
0 and 1, a default of 1, to no default: ok 0, adds [0, 10]; the old graph 1, the new 0
0 and 1, a default of 1, to a default of 1: ok 0, adds [10, 10]; the old graph 1, the new 10
0 and 1, a default of 1, to a default of 0: ok 0, adds [0, 0]; the old graph 1, the new 0
0 and 1, a default of 0, to no default: ok 0, adds [0, 10]; the old graph 0, the new 0
0 and 1, a default of 0, to a default of 1: ok 0, adds [10, 10]; the old graph 0, the new 10
0 and 1, a default of 0, to a default of 0: ok 0, adds [0, 0]; the old graph 0, the new 0
1 and 0, no default, to no default: ok 0, adds [10, 0]; the old graph 0, the new 10
1 and 0, no default, to a default of 1: ok 0, adds [10, 10]; the old graph 0, the new 10
1 and 0, no default, to a default of 0: ok 0, adds [0, 0]; the old graph 0, the new 0
1 and 0, a default of 1, to no default: ok 0, adds [10, 0]; the old graph 1, the new 10
1 and 0, a default of 1, to a default of 1: ok 0, adds [10, 10]; the old graph 1, the new 10
1 and 0, a default of 1, to a default of 0: ok 0, adds [0, 0]; the old graph 1, the new 0
1 and 0, a default of 0, to no default: ok 0, adds [10, 0]; the old graph 0, the new 10
1 and 0, a default of 0, to a default of 1: ok 0, adds [10, 10]; the old graph 0, the new 10
1 and 0, a default of 0, to a default of 0: ok 0, adds [0, 0]; the old graph 0, the new 0
1 and 1, no default, to no default: ok 0, adds [10, 10]; the old graph 1, the new 10
1 and 1, no default, to a default of 1: ok 0, adds [10, 10]; the old graph 1, the new 10
1 and 1, no default, to a default of 0: ok 0, adds [0, 0]; the old graph 1, the new 0
1 and 1, a default of 1, to no default: ok 0, adds [10, 10]; the old graph 1, the new 10
1 and 1, a default of 1, to a default of 1: ok 0, adds [10, 10]; the old graph 1, the new 10
1 and 1, a default of 1, to a default of 0: ok 0, adds [0, 0]; the old graph 1, the new 0
1 and 1, a default of 0, to no default: ok 0, adds [10, 10]; the old graph 0, the new 10
1 and 1, a default of 0, to a default of 1: ok 0, adds [10, 10]; the old graph 0, the new 10
1 and 1, a default of 0, to a default of 0: ok 0, adds [0, 0]; the old graph 0, the new 0
";
