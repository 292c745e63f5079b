//! Clones of embedded graphs: which succeed.

use std::ptr::null_mut;

use cuda_sys::*;
use cuda_tests::needs;

use crate::common::table::{Table, said};
use crate::common::*;

/// Clones the graph; a clone that there is, is instantiated and embedded as well.
fn clone_of(driver: &Session, graph: CUgraph) -> String {
    let (mut clone, mut exec, outer) = (null_mut(), null_mut(), driver.graph());
    let answer = unsafe { driver.cuGraphClone(&mut clone, graph) };
    let mut seen = said(answer);
    if answer == OK {
        let instantiated = unsafe { driver.cuGraphInstantiateWithFlags(&mut exec, clone, 0) };
        let embedded = driver.child(outer, clone).0;
        let (nodes, answers) = (driver.count(clone).unwrap(), [instantiated, embedded].map(said));
        seen = format!("{seen}, {nodes} nodes, {}, {}", answers[0], answers[1]);
        if instantiated == OK {
            driver.end(exec);
        }
        driver.destroy(&[clone]);
    }
    driver.destroy(&[outer]);
    seen
}

/// A graph of two nodes in a row.
fn chain(driver: &Session) -> CUgraph {
    let own = driver.graph();
    let first = driver.empty(own, &[]);
    driver.empty(own, &[first]);
    own
}

/// A graph whose node holds a chain.
fn holder(driver: &Session) -> CUgraph {
    let own = driver.graph();
    put(driver, own, chain(driver), CLONE);
    own
}

const CLONE: i32 = 0;
const MOVE: i32 = 1;

/// Puts a graph into a node of another, by a clone or itself, so that it is needed no more: the
/// node, and the graph that it holds.
fn put(driver: &Session, graph: CUgraph, inner: CUgraph, ownership: i32) -> (CUgraphNode, CUgraph) {
    let (answer, node) = driver.embed(graph, inner, ownership);
    assert_eq!(answer, OK);
    if ownership == CLONE {
        driver.destroy(&[inner]);
    }
    (node, driver.embedded(node))
}

#[test]
fn of_graphs_with_and_without_children() {
    let driver = session();
    needs!(MovedGraphs);
    let mut table = Table::default();
    for (ownership, how) in [(CLONE, "cloned"), (MOVE, "moved")] {
        let mut row = |what: &str, graph| table.row(format!("{how}, {what}"), clone_of(&driver, graph));
        let roots: [CUgraph; 5] = std::array::from_fn(|_| driver.graph());
        let put_in = |root, graph| put(&driver, root, graph, ownership).1;

        let inner = put_in(roots[0], chain(&driver));
        row("no children", inner);
        row("no children, the root", roots[0]);

        let inner = put_in(roots[1], holder(&driver));
        row("a child from before", inner);
        row("a child from before, the root", roots[1]);

        let inner = put_in(roots[2], chain(&driver));
        let (node, _) = put(&driver, inner, chain(&driver), CLONE);
        row("a child cloned in later", inner);
        row("a child cloned in later, the root", roots[2]);
        assert_eq!(unsafe { driver.cuGraphDestroyNode(node) }, OK);
        row("that child removed", inner);

        let inner = put_in(roots[3], holder(&driver));
        assert_eq!(unsafe { driver.cuGraphDestroyNode(driver.nodes(inner)[0]) }, OK);
        row("a child from before removed", inner);

        let inner = put_in(roots[4], chain(&driver));
        let (_, deep) = put(&driver, inner, chain(&driver), MOVE);
        row("a child moved in later", inner);
        row("what was moved in later", deep);
        row("a child moved in later, the root", roots[4]);
        driver.destroy(&roots);
    }
    table.is(FIRST);
}

const FIRST: &str = "
cloned, no children: ok, 2 nodes, ok, ok
cloned, no children, the root: ok, 1 nodes, ok, ok
cloned, a child from before: ok, 1 nodes, ok, ok
cloned, a child from before, the root: ok, 1 nodes, ok, ok
cloned, a child cloned in later: ok, 3 nodes, ok, ok
cloned, a child cloned in later, the root: ok, 1 nodes, ok, ok
cloned, that child removed: ok, 2 nodes, ok, ok
cloned, a child from before removed: ok, 0 nodes, ok, ok
cloned, a child moved in later: ok, 3 nodes, ok, ok
cloned, what was moved in later: ok, 2 nodes, ok, ok
cloned, a child moved in later, the root: ok, 1 nodes, ok, ok
moved, no children: ok, 2 nodes, ok, ok
moved, no children, the root: ok, 1 nodes, ok, ok
moved, a child from before: ok, 1 nodes, ok, ok
moved, a child from before, the root: ok, 1 nodes, ok, ok
moved, a child cloned in later: ok, 3 nodes, ok, ok
moved, a child cloned in later, the root: ok, 1 nodes, ok, ok
moved, that child removed: ok, 2 nodes, ok, ok
moved, a child from before removed: ok, 0 nodes, ok, ok
moved, a child moved in later: ok, 3 nodes, ok, ok
moved, what was moved in later: ok, 2 nodes, ok, ok
moved, a child moved in later, the root: ok, 1 nodes, ok, ok
";

#[test]
fn of_graphs_at_the_second_level() {
    let driver = session();
    needs!(MovedGraphs);
    let mut table = Table::default();
    let mut row = |what: &str, graph| table.row(what, clone_of(&driver, graph));
    let roots: [CUgraph; 4] = std::array::from_fn(|_| driver.graph());
    let within = |graph| driver.embedded(driver.nodes(graph)[0]);

    let (_, first) = put(&driver, roots[0], holder(&driver), CLONE);
    let second = within(first);
    row("from before, the second level, no children", second);
    put(&driver, second, holder(&driver), CLONE);
    row("from before, the second level, a child of two levels later", second);
    row("the first level of that", first);
    row("the root of that", roots[0]);

    let (_, first) = put(&driver, roots[1], chain(&driver), CLONE);
    let (_, second) = put(&driver, first, chain(&driver), CLONE);
    row("later, the second level, no children", second);
    let (_, third) = put(&driver, second, chain(&driver), CLONE);
    row("later, the second level, a child later", second);
    row("later, the third level, no children", third);

    let middle = driver.graph();
    put(&driver, middle, holder(&driver), CLONE);
    let (_, first) = put(&driver, roots[2], middle, CLONE);
    row("from before, the first of three levels", first);
    row("from before, the second of three levels", within(first));
    row("the root of that", roots[2]);

    let middle = driver.graph();
    let (_, second) = put(&driver, middle, holder(&driver), MOVE);
    let (_, first) = put(&driver, roots[3], middle, MOVE);
    row("moved, the first level", first);
    row("moved, the second level with a child from before", second);
    row("the root of that", roots[3]);
    driver.destroy(&roots);
    table.is(SECOND);
}

const SECOND: &str = "
from before, the second level, no children: ok, 2 nodes, ok, ok
from before, the second level, a child of two levels later: ok, 3 nodes, ok, ok
the first level of that: ok, 1 nodes, ok, ok
the root of that: ok, 1 nodes, ok, ok
later, the second level, no children: ok, 2 nodes, ok, ok
later, the second level, a child later: ok, 3 nodes, ok, ok
later, the third level, no children: ok, 2 nodes, ok, ok
from before, the first of three levels: ok, 1 nodes, ok, ok
from before, the second of three levels: ok, 1 nodes, ok, ok
the root of that: ok, 1 nodes, ok, ok
moved, the first level: ok, 1 nodes, ok, ok
moved, the second level with a child from before: ok, 1 nodes, ok, ok
the root of that: ok, 1 nodes, ok, ok
";
