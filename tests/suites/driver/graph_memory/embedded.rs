//! Memory nodes in embedded graphs.

use std::ptr::{null, null_mut};

use cuda_sys::*;
use cuda_tests::needs;

use crate::common::table::{Table, all_said, said};
use crate::common::*;
use crate::graph_memory::nodes::{alloc, free, try_free};

/// A graph that allocates and fills, and frees if it should.
pub(crate) fn source(driver: &Session, frees: bool) -> (CUgraph, CUdeviceptr) {
    let own = driver.graph();
    let (node, address) = alloc(driver, own, &[], 64);
    let filled = driver.fill(own, &[node], address, 3);
    if frees {
        free(driver, own, &[filled], address);
    }
    (own, address)
}

/// The codes of instantiation, of two launches and of the wait for them.
fn runs(driver: &Session, graph: CUgraph) -> String {
    let (mut exec, mut codes) = (null_mut(), Vec::new());
    unsafe {
        codes.push(driver.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        if codes[0] == OK {
            codes.extend([(); 2].map(|()| driver.launch(exec)));
            codes.push(driver.cuStreamSynchronize(driver.stream));
            codes.push(driver.cuGraphExecDestroy(exec));
        }
    }
    all_said(&codes)
}

/// Embeds the graph in one of its own: what that and the uses of both answer.
fn embeds(
    driver: &Session,
    table: &mut Table,
    what: &str,
    inner: CUgraph,
    ownership: i32,
) -> Option<CUgraph> {
    let outer = driver.graph();
    let (answer, _) = driver.embed(outer, inner, ownership);
    table.row(what, said(answer));
    if answer == OK {
        return Some(outer);
    }
    driver.destroy(&[outer]);
    None
}

#[test]
fn graphs_with_memory_are_embedded_with_and_without_executables() {
    let driver = session();
    needs!(MovedGraphs);
    let mut table = Table::default();
    for (ownership, how) in [(0, "clone"), (1, "move")] {
        for (state, what) in
            [(0, "no executable"), (1, "an executable that is gone"), (2, "a live executable")]
        {
            let (inner, address) = source(&driver, true);
            let exec = (state > 0).then(|| driver.instantiate(inner));
            if let Some(exec) = exec {
                driver.run(exec);
                if state == 1 {
                    driver.end(exec);
                }
            }
            let outer = embeds(&driver, &mut table, &format!("{how}, {what}"), inner, ownership);
            if let Some(outer) = outer {
                table.row(format!("{how}, {what}, the outer one"), runs(&driver, outer));
            }
            if let (2, Some(exec)) = (state, exec) {
                let codes = [driver.launch(exec), unsafe { driver.cuStreamSynchronize(driver.stream) }];
                table.row(format!("{how}, {what}, that launched"), all_said(&codes));
                driver.end(exec);
                if let Some(outer) = outer {
                    table
                        .row(format!("{how}, {what}, the outer one once that is gone"), runs(&driver, outer));
                }
            }
            table.row(format!("{how}, {what}, its memory"), said(driver.try_read(address, &mut 0)));
            driver.destroy(&[if ownership == 1 { outer.unwrap_or(inner) } else { inner }]);
        }
    }
    table.is(EMBEDS);
}

const EMBEDS: &str = "
clone, no executable: NOT_SUPPORTED
clone, no executable, its memory: INVALID_VALUE
clone, an executable that is gone: NOT_SUPPORTED
clone, an executable that is gone, its memory: INVALID_VALUE
clone, a live executable: NOT_SUPPORTED
clone, a live executable, that launched: ok, ok
clone, a live executable, its memory: INVALID_VALUE
move, no executable: ok
move, no executable, the outer one: all 5 ok
move, no executable, its memory: INVALID_VALUE
move, an executable that is gone: ok
move, an executable that is gone, the outer one: all 5 ok
move, an executable that is gone, its memory: INVALID_VALUE
move, a live executable: NOT_SUPPORTED
move, a live executable, that launched: ok, ok
move, a live executable, its memory: INVALID_VALUE
";

#[test]
fn graphs_whose_memory_lives_are_moved() {
    let driver = session();
    needs!(MovedGraphs);
    let mut table = Table::default();
    let (inner, address) = source(&driver, false);
    let exec = driver.instantiate(inner);
    driver.run(exec);
    driver.end(exec);
    if let Some(outer) = embeds(&driver, &mut table, "its memory lives", inner, 1) {
        table.row("the outer one while it lives", runs(&driver, outer));
        table.row("a free", said(unsafe { driver.cuMemFree(address) }));
        table.row("the outer one then", runs(&driver, outer));
        table.row("a free", said(unsafe { driver.cuMemFree(address) }));
        driver.destroy(&[outer]);
    }
    table.is(LIVING);
}

const LIVING: &str = "
its memory lives: ok
the outer one while it lives: ok, INVALID_VALUE, INVALID_VALUE, ok, ok
a free: ok
the outer one then: ok, ok, INVALID_VALUE, ok, ok
a free: ok
";

/// A free node in a child's graph is tried, and the whole is run if there is one: `free` may be no
/// node then.
fn freed(
    driver: &Session,
    table: &mut Table,
    what: &str,
    root: CUgraph,
    place: CUgraph,
    address: CUdeviceptr,
) {
    let (added, _) = try_free(driver, place, &[], address);
    table.row(format!("{what}, a free node"), said(added));
    if added == OK {
        table.row(format!("{what}, the same in the root"), said(try_free(driver, root, &[], address).0));
        table.row(format!("{what}, the whole"), runs(driver, root));
    }
    table.row(format!("{what}, the memory"), said(driver.try_read(address, &mut 0)));
    table.row(format!("{what}, a free"), said(unsafe { driver.cuMemFree(address) }));
}

#[test]
fn a_cloned_child_frees_what_its_parent_allocates() {
    let driver = session();
    let mut table = Table::default();
    let ((own, address), plain) = (source(&driver, false), driver.graph());
    let (answer, node) = driver.child(own, plain);
    assert_eq!(answer, OK);
    let filled = driver.nodes(own)[1];
    assert_eq!(unsafe { driver.cuGraphAddDependencies(own, &filled, &node, 1) }, OK);
    freed(&driver, &mut table, "of the parent", own, driver.embedded(node), address);
    driver.destroy(&[own, plain]);
    table.is(PARENT);
}

const PARENT: &str = "
of the parent, a free node: NOT_SUPPORTED
of the parent, the memory: INVALID_VALUE
of the parent, a free: INVALID_VALUE
";

#[test]
fn a_cloned_child_frees_what_another_graph_left() {
    let driver = session();
    let mut table = Table::default();
    let ((far, address), own, plain) = (source(&driver, false), driver.graph(), driver.graph());
    let exec = driver.instantiate(far);
    driver.run(exec);
    let (answer, node) = driver.child(own, plain);
    assert_eq!(answer, OK);
    freed(&driver, &mut table, "of another graph", own, driver.embedded(node), address);
    driver.end(exec);
    driver.destroy(&[own, plain, far]);
    table.is(FAR);
}

const FAR: &str = "
of another graph, a free node: NOT_SUPPORTED
of another graph, the memory: ok
of another graph, a free: ok
";

#[test]
fn a_moved_child_frees_what_it_allocates() {
    let driver = session();
    needs!(MovedGraphs);
    let mut table = Table::default();
    let ((inner, address), own) = (source(&driver, false), driver.graph());
    assert_eq!(driver.embed(own, inner, 1).0, OK);
    let (added, _) = try_free(&driver, inner, &driver.nodes(inner)[1..], address);
    table.row("a free node", said(added));
    table.row("the whole", runs(&driver, own));
    table.row("the memory", said(driver.try_read(address, &mut 0)));
    table.row("a free", said(unsafe { driver.cuMemFree(address) }));
    driver.destroy(&[own]);
    table.is(ITSELF);
}

const ITSELF: &str = "
a free node: NOT_SUPPORTED
the whole: ok, ok, INVALID_VALUE, ok, ok
the memory: ok
a free: ok
";

#[test]
fn a_moved_child_frees_what_its_sibling_allocates() {
    let driver = session();
    needs!(MovedGraphs);
    let mut table = Table::default();
    let ((inner, address), other, own) = (source(&driver, false), driver.graph(), driver.graph());
    let (one, two) = (driver.embed(own, inner, 1), driver.embed(own, other, 1));
    assert_eq!((one.0, two.0), (OK, OK));
    assert_eq!(unsafe { driver.cuGraphAddDependencies(own, &one.1, &two.1, 1) }, OK);
    freed(&driver, &mut table, "of a sibling", own, other, address);
    driver.destroy(&[own]);
    // The same, but the free node is there before they meet.
    let ((inner, address), other, own) = (source(&driver, false), driver.graph(), driver.graph());
    free(&driver, other, &[], address);
    let (one, two) = (driver.embed(own, inner, 1), driver.embed(own, other, 1));
    table.row("from before, both moved", all_said(&[one.0, two.0]));
    if (one.0, two.0) == (OK, OK) {
        assert_eq!(unsafe { driver.cuGraphAddDependencies(own, &one.1, &two.1, 1) }, OK);
        table.row("the whole", runs(&driver, own));
    }
    table.row("the memory", said(driver.try_read(address, &mut 0)));
    driver.destroy(&[own]);
    table.is(SIBLING);
}

const SIBLING: &str = "
of a sibling, a free node: NOT_SUPPORTED
of a sibling, the memory: INVALID_VALUE
of a sibling, a free: INVALID_VALUE
from before, both moved: ok, ok
the whole: all 5 ok
the memory: INVALID_VALUE
";

/// Takes an edge and the nodes out of a graph of two nodes in a row and a third.
fn taken_out(driver: &Session, table: &mut Table, what: &str, place: CUgraph, nodes: &[CUgraphNode]) {
    let removed = unsafe { driver.cuGraphRemoveDependencies(place, &nodes[0], &nodes[1], 1) };
    table.row(format!("{what}, the edge"), said(removed));
    for (name, node) in [("the last", nodes[2]), ("the second", nodes[1]), ("the first", nodes[0])] {
        table.row(format!("{what}, {name} node"), said(unsafe { driver.cuGraphDestroyNode(node) }));
    }
    table.row(format!("{what}, nodes left"), format!("{:?}", driver.count(place).map_err(said)));
}

/// Three empty nodes, the first two in a row.
fn three(driver: &Session, graph: CUgraph) -> Vec<CUgraphNode> {
    let first = driver.empty(graph, &[]);
    vec![first, driver.empty(graph, &[first]), driver.empty(graph, &[])]
}

#[test]
fn nodes_and_edges_are_taken_out_beside_memory_nodes() {
    let driver = session();
    needs!(Conditionals);
    let mut table = Table::default();
    // A cloned child whose parent allocates.
    let ((own, _), plain) = (source(&driver, true), driver.graph());
    three(&driver, plain);
    let (_, node) = driver.child(own, plain);
    let embedded = driver.embedded(node);
    taken_out(&driver, &mut table, "a cloned child", embedded, &driver.nodes(embedded));
    table.row("the child node itself", said(unsafe { driver.cuGraphDestroyNode(node) }));
    table.row("the whole", runs(&driver, own));
    driver.destroy(&[own]);
    // One that was there before the allocation, and one within it.
    let own = driver.graph();
    let (_, node) = driver.child(own, plain);
    let embedded = driver.embedded(node);
    let (answer, _) = driver.child(embedded, plain);
    assert_eq!(answer, OK);
    let (first, address) = alloc(&driver, own, &[], 64);
    free(&driver, own, &[first], address);
    let node = driver.nodes(embedded)[3];
    let deep = driver.embedded(node);
    taken_out(&driver, &mut table, "at the second level", deep, &driver.nodes(deep));
    table.row("the child node there", said(unsafe { driver.cuGraphDestroyNode(node) }));
    table.row("the whole", runs(&driver, own));
    driver.destroy(&[own]);
    // The body of a condition.
    let (own, _) = source(&driver, true);
    let handle = driver.condition(own, 1);
    let (node, bodies) = driver.conditional(own, &[], handle, (IF, 1));
    let nodes = three(&driver, bodies[0]);
    taken_out(&driver, &mut table, "a body", bodies[0], &nodes);
    let ended = unsafe { driver.cuGraphDestroyNode(node) };
    table.row("the conditional node itself", said(ended));
    if ended != OK {
        driver.empty(bodies[0], &[]);
    }
    table.row("the whole", runs(&driver, own));
    driver.destroy(&[own, plain]);
    table.is(TAKEN);
}

const TAKEN: &str = "
a cloned child, the edge: ok
a cloned child, the last node: ok
a cloned child, the second node: ok
a cloned child, the first node: ok
a cloned child, nodes left: Ok(0)
the child node itself: NOT_SUPPORTED
the whole: all 5 ok
at the second level, the edge: ok
at the second level, the last node: ok
at the second level, the second node: ok
at the second level, the first node: ok
at the second level, nodes left: Ok(0)
the child node there: ok
the whole: all 5 ok
a body, the edge: ok
a body, the last node: ok
a body, the second node: ok
a body, the first node: ok
a body, nodes left: Ok(0)
the conditional node itself: NOT_SUPPORTED
the whole: all 5 ok
";

#[test]
fn child_nodes_beside_memory_nodes_keep_their_graphs() {
    let driver = session();
    needs!(MovedGraphs);
    let (mut table, plain) = (Table::default(), driver.graph());
    let set = |node| {
        let kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH;
        let mut params = CUgraphNodeParams { type_: kind, ..Default::default() };
        let ownership = CUgraphChildGraphNodeOwnership(0);
        params.__bindgen_anon_1.graph = CUDA_CHILD_GRAPH_NODE_PARAMS { graph: plain, ownership };
        said(unsafe { driver.cuGraphNodeSetParams(node, &mut params) })
    };
    let child = |graph| {
        let (answer, node) = driver.child(graph, plain);
        assert_eq!(answer, OK);
        node
    };
    // In a graph that allocates, before it is moved and then; beside it and in what is cloned
    // there.
    let ((inner, _), own) = (source(&driver, true), driver.graph());
    let (within, beside) = (child(inner), child(own));
    table.row("beside an allocation", set(within));
    let deep = child(driver.embedded(beside));
    table.row("in a cloned child, no allocation", set(deep));
    assert_eq!(driver.embed(own, inner, 1).0, OK);
    table.row("beside an allocation, moved", set(within));
    table.row("beside what was moved", set(beside));
    table.row("in a cloned child beside that", set(deep));
    table.row("the whole", runs(&driver, own));
    driver.destroy(&[own, plain]);
    table.is("
        beside an allocation: NOT_SUPPORTED
        in a cloned child, no allocation: ok
        beside an allocation, moved: NOT_SUPPORTED
        beside what was moved: NOT_SUPPORTED
        in a cloned child beside that: ok
        the whole: all 5 ok
        ");
}

#[test]
fn nodes_and_edges_are_taken_out_of_moved_graphs_with_memory_nodes() {
    let driver = session();
    needs!(MovedGraphs);
    let mut table = Table::default();
    // Beside an allocation in the child, in the parent, and in a child of the child.
    let ((inner, _), own) = (source(&driver, true), driver.graph());
    let nodes = three(&driver, inner);
    let outside = three(&driver, own);
    let (answer, node) = driver.embed(own, inner, 1);
    assert_eq!(answer, OK);
    taken_out(&driver, &mut table, "in the child that allocates", inner, &nodes);
    taken_out(&driver, &mut table, "in its parent", own, &outside);
    table.row("its node", said(unsafe { driver.cuGraphDestroyNode(node) }));
    table.row("the whole", runs(&driver, own));
    driver.destroy(&[own]);
    let ((own, _), inner) = (source(&driver, true), driver.graph());
    let nodes = three(&driver, inner);
    let (answer, node) = driver.embed(own, inner, 1);
    assert_eq!(answer, OK);
    taken_out(&driver, &mut table, "in a child whose parent allocates", inner, &nodes);
    let mut params = crate::graph_memory::nodes::alloc_params(64);
    let added = unsafe { driver.cuGraphAddMemAllocNode(&mut null_mut(), inner, null(), 0, &mut params) };
    table.row("an allocation there", said(added));
    table.row("its node", said(unsafe { driver.cuGraphDestroyNode(node) }));
    table.row("the whole", runs(&driver, own));
    driver.destroy(&[own]);
    table.is(MOVED);
}

const MOVED: &str = "
in the child that allocates, the edge: NOT_SUPPORTED
in the child that allocates, the last node: NOT_SUPPORTED
in the child that allocates, the second node: NOT_SUPPORTED
in the child that allocates, the first node: NOT_SUPPORTED
in the child that allocates, nodes left: Ok(6)
in its parent, the edge: NOT_SUPPORTED
in its parent, the last node: NOT_SUPPORTED
in its parent, the second node: NOT_SUPPORTED
in its parent, the first node: NOT_SUPPORTED
in its parent, nodes left: Ok(4)
its node: NOT_SUPPORTED
the whole: all 5 ok
in a child whose parent allocates, the edge: ok
in a child whose parent allocates, the last node: ok
in a child whose parent allocates, the second node: ok
in a child whose parent allocates, the first node: ok
in a child whose parent allocates, nodes left: Ok(0)
an allocation there: NOT_SUPPORTED
its node: NOT_SUPPORTED
the whole: all 5 ok
";
