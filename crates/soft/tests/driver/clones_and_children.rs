//! Clones, and graphs in child nodes.

use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_sys::CUgraphNodeType as T;
use cuda_sys::*;

const CLONE: i32 = 0;
const MOVE: i32 = 1;

fn child_params(graph: CUgraph, ownership: i32) -> CUgraphNodeParams {
    let mut params = generic(T::CU_GRAPH_NODE_TYPE_GRAPH);
    params.__bindgen_anon_1.graph =
        CUDA_CHILD_GRAPH_NODE_PARAMS { graph, ownership: CUgraphChildGraphNodeOwnership(ownership) };
    params
}

fn embed(driver: &Driver, outer: CUgraph, inner: CUgraph, ownership: i32) -> (CUresult, CUgraphNode) {
    add(driver, outer, &[], &mut child_params(inner, ownership))
}

fn embedded(driver: &Driver, node: CUgraphNode) -> CUgraph {
    let mut graph = null_mut();
    assert_eq!(unsafe { driver.cuGraphChildGraphNodeGetGraph(node, &mut graph) }, OK);
    graph
}

fn alloc_params() -> CUDA_MEM_ALLOC_NODE_PARAMS {
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: 64, ..Default::default() };
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    params
}

fn alloc(driver: &Driver, graph: CUgraph) -> CUresult {
    unsafe { driver.cuGraphAddMemAllocNode(&mut null_mut(), graph, null(), 0, &mut alloc_params()) }
}

/// Adds an IF node with one body, whose graph it returns.
fn branch(driver: &Driver, root: CUgraph, graph: CUgraph) -> (CUresult, CUgraphNode, CUgraph) {
    let mut handle = 0;
    unsafe {
        assert_eq!(driver.cuGraphConditionalHandleCreate(&mut handle, root, context(driver), 1, 1), Ok(OK));
        let mut params = generic(T::CU_GRAPH_NODE_TYPE_CONDITIONAL);
        params.__bindgen_anon_1.conditional =
            CUDA_CONDITIONAL_NODE_PARAMS { handle, size: 1, ctx: context(driver), ..Default::default() };
        let (answer, node) = add(driver, graph, &[], &mut params);
        let bodies = params.__bindgen_anon_1.conditional.phGraph_out;
        (answer, node, if bodies.is_null() { null_mut() } else { bodies.read() })
    }
}

fn clone_of(driver: &Driver, graph: CUgraph) -> (CUresult, CUgraph) {
    let mut clone = null_mut();
    (unsafe { driver.cuGraphClone(&mut clone, graph) }, clone)
}

fn find(driver: &Driver, node: CUgraphNode, clone: CUgraph) -> (CUresult, CUgraphNode) {
    let mut found = null_mut();
    (unsafe { driver.cuGraphNodeFindInClone(&mut found, node, clone) }, found)
}

fn destroy(driver: &Driver, graphs: &[CUgraph]) {
    for graph in graphs {
        assert_eq!(unsafe { driver.cuGraphDestroy(*graph) }, OK);
    }
}

#[test]
fn looking_nodes_up_in_clones() {
    leaves_nothing("clones_and_children::looking_nodes_up_in_clones", || {
        let driver = &session();
        let (own, inner) = (graph(driver), graph(driver));
        let a = empty(driver, own, &[]);
        let deep = empty(driver, inner, &[]);
        let (_, node) = embed(driver, own, inner, CLONE);
        let inside = embedded(driver, node);
        let (_, deep_in_own) = find(driver, deep, inside);
        let (_, clone) = clone_of(driver, own);
        let (_, second) = clone_of(driver, clone);
        let late = empty(driver, own, &[]);
        let (_, twin) = find(driver, a, clone);
        assert_eq!(twin, nodes(driver, clone)[0]);
        let (_, child_twin) = find(driver, node, clone);
        for (what, original, place, answer) in [
            ("a node", a, clone, OK),
            ("a child node", node, clone, OK),
            ("added after cloning", late, clone, IV),
            ("roles swapped", twin, own, IV),
            ("the same graph", a, own, IV),
            ("a clone of a clone", a, second, IV),
            ("in that its original", twin, second, OK),
            ("an inner node in the outer clone", deep_in_own, clone, IV),
            ("an inner node in the clone's child", deep_in_own, embedded(driver, child_twin), OK),
            ("null", null_mut(), clone, IV),
            ("no graph", a, null_mut(), IV),
        ] {
            assert_eq!(find(driver, original, place).0, answer, "{what}");
        }
        unsafe { assert_eq!(driver.cuGraphDestroyNode(twin), OK) };
        assert_eq!(find(driver, a, clone).0, IV);
        // Its handle is reused by the next node.
        assert_eq!(empty(driver, clone, &[]), twin);
        assert_eq!(find(driver, a, clone).0, IV);
        destroy(driver, &[own, inner, clone, second]);
    });
}

#[test]
fn what_can_be_embedded() {
    leaves_nothing("clones_and_children::what_can_be_embedded", || {
        let driver = &session();
        // How the inner graph is made, and whether it can be cloned and moved into another.
        type Make<'a> = &'a dyn Fn(CUgraph);
        let rows: [(&str, Make<'_>, CUresult, CUresult); 6] = [
            ("empty", &|_| {}, OK, OK),
            ("a node", &|graph| assert!(!empty(driver, graph, &[]).is_null()), OK, OK),
            ("an allocation", &|graph| assert_eq!(alloc(driver, graph), OK), NS, OK),
            ("a conditional", &|graph| assert_eq!(branch(driver, graph, graph).0, OK), NS, NS),
            (
                "an unused handle",
                &|graph| unsafe {
                    let answer = driver.cuGraphConditionalHandleCreate(&mut 0, graph, context(driver), 0, 0);
                    assert_eq!(answer, Ok(OK));
                },
                NS,
                NS,
            ),
            (
                "a child of its own",
                &|graph| {
                    let inner = self::graph(driver);
                    assert_eq!(embed(driver, graph, inner, MOVE).0, OK);
                },
                OK,
                OK,
            ),
        ];
        for (what, make, cloned, moved) in rows {
            for (ownership, answer) in [(CLONE, cloned), (MOVE, moved)] {
                let (outer, inner) = (graph(driver), graph(driver));
                let first = empty(driver, outer, &[]);
                make(inner);
                let (found, node) = embed(driver, outer, inner, ownership);
                assert_eq!(found, answer, "{what}, {ownership}");
                let gone = answer == OK && ownership == MOVE;
                if answer == OK {
                    assert_eq!(embedded(driver, node) == inner, gone, "{what}");
                    assert_eq!(nodes(driver, outer), [first, node]);
                } else {
                    assert_eq!(nodes(driver, outer), [first]);
                }
                destroy(driver, &[outer]);
                assert_eq!(unsafe { driver.cuGraphDestroy(inner) }, if gone { IV } else { OK }, "{what}");
            }
        }
    });
}

#[test]
fn the_graph_of_a_cloned_child() {
    leaves_nothing("clones_and_children::the_graph_of_a_cloned_child", || {
        let driver = &session();
        let (library, stream) = (library(driver), stream(driver));
        let (add, address) = (function(driver, library, "add"), words(driver, 1));
        let (outer, inner) = (graph(driver), graph(driver));
        let (_, node) = embed(driver, outer, inner, CLONE);
        let inside = embedded(driver, node);
        word_node(driver, inside, &[], add, address, 1);
        assert_eq!(alloc(driver, inside), NS);
        assert_eq!(unsafe { driver.cuGraphDestroy(inside) }, IV);
        let (answer, whole) = clone_of(driver, outer);
        assert_eq!((answer, nodes(driver, whole).len()), (OK, 1));
        let (_, clone) = clone_of(driver, inside);
        let other = graph(driver);
        for ownership in [CLONE, MOVE] {
            assert_eq!(embed(driver, other, inside, ownership).0, NS);
            assert_eq!(embed(driver, outer, inside, ownership).0, NS);
        }
        let mut by_name = null_mut();
        let answer = unsafe { driver.cuGraphAddChildGraphNode(&mut by_name, other, null(), 0, inside) };
        assert_eq!((answer, nodes(driver, other).len()), (NS, 0));
        // It takes a conditional, and then the outer graph counts as one with conditionals.
        let (answer, _, body) = branch(driver, outer, inside);
        assert_eq!(answer, OK);
        word_node(driver, body, &[], add, address, 10);
        assert_eq!(clone_of(driver, outer).0, NS);
        assert_eq!(embed(driver, other, outer, CLONE).0, NS);
        let exec = instantiate(driver, outer);
        assert_eq!(refusal(driver, outer, 0).0, NS);
        run(driver, exec, stream);
        assert_eq!(read(driver, address, 1), [11]);
        unsafe {
            assert_eq!(driver.cuGraphDestroyNode(node), OK);
            assert_eq!(driver.cuGraphGetNodes(inside, null_mut(), &mut 0), IV);
            run(driver, exec, stream);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
        }
        assert_eq!(read(driver, address, 1), [22]);
        destroy(driver, &[outer, inner, clone, other, whole]);
        unsafe {
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn graphs_nested_in_the_graph_of_a_child() {
    leaves_nothing("clones_and_children::graphs_nested_in_the_graph_of_a_child", || {
        let driver = &session();
        let (outer, inner, other) = (graph(driver), graph(driver), graph(driver));
        empty(driver, inner, &[]);
        let (_, node) = embed(driver, outer, inner, CLONE);
        let inside = embedded(driver, node);
        let (answer, second) = embed(driver, inside, inner, CLONE);
        assert_eq!(answer, OK);
        let deep = embedded(driver, second);
        let (answer, third) = embed(driver, deep, inner, CLONE);
        assert_eq!(answer, OK);
        let (_, elsewhere) = embed(driver, other, inner, CLONE);
        // Those that hold others, and the one that holds none.
        for source in [inside, deep, embedded(driver, third)] {
            assert_eq!(embed(driver, other, source, CLONE).0, NS);
            assert_eq!(embed(driver, outer, source, CLONE).0, NS);
            let mut params = child_params(source, CLONE);
            assert_eq!(unsafe { driver.cuGraphNodeSetParams(elsewhere, &mut params) }, NS);
            let (answer, clone) = clone_of(driver, source);
            assert_eq!(answer, OK);
            destroy(driver, &[clone]);
        }
        // The whole can be cloned, and embedded as well.
        let (answer, whole) = clone_of(driver, outer);
        assert_eq!((answer, nodes(driver, whole).len()), (OK, 1));
        assert_eq!(embed(driver, other, outer, CLONE).0, OK);
        assert_eq!(embed(driver, inside, other, CLONE).0, OK);
        destroy(driver, &[outer, inner, other, whole]);
    });
}

#[test]
fn the_graph_of_a_moved_child() {
    leaves_nothing("clones_and_children::the_graph_of_a_moved_child", || {
        let driver = &session();
        let stream = stream(driver);
        let (outer, inner, other) = (graph(driver), graph(driver), graph(driver));
        empty(driver, inner, &[]);
        let early = instantiate(driver, inner);
        let (answer, node) = embed(driver, outer, inner, MOVE);
        assert_eq!((answer, embedded(driver, node)), (OK, inner));
        empty(driver, inner, &[]);
        let (answer, clone) = clone_of(driver, inner);
        assert_eq!((answer, nodes(driver, clone).len()), (OK, 2));
        assert_eq!(refusal(driver, inner, 0).0, NS);
        assert_eq!(embed(driver, other, inner, MOVE).0, NS);
        assert_eq!(embed(driver, other, inner, CLONE).0, NS);
        assert_eq!(alloc(driver, inner), NS);
        unsafe {
            assert_eq!(driver.cuGraphDestroy(inner), IV);
            let mut info = CUgraphExecUpdateResultInfo::default();
            assert_eq!((driver.cuGraphExecUpdate(early, inner, &mut info), info.result.0), (IV, 0));
            let mut set = child_params(inner, MOVE);
            let (_, elsewhere) = embed(driver, other, clone, CLONE);
            assert_eq!(driver.cuGraphNodeSetParams(elsewhere, &mut set), NS);
        }
        // The earlier executable lives on, and the outer graph runs.
        run(driver, early, stream);
        let exec = instantiate(driver, outer);
        run(driver, exec, stream);
        unsafe {
            assert_eq!(driver.cuGraphDestroyNode(node), OK);
            assert_eq!(driver.cuGraphGetNodes(inner, null_mut(), &mut 0), IV);
            run(driver, early, stream);
            run(driver, exec, stream);
            assert_eq!(driver.cuGraphExecDestroy(early), OK);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
        destroy(driver, &[outer, clone, other]);
    });
}

#[test]
fn a_moved_child_with_allocations_brings_their_rules() {
    leaves_nothing("clones_and_children::a_moved_child_with_allocations_brings_their_rules", || {
        let driver = &session();
        let (outer, inner, around) = (graph(driver), graph(driver), graph(driver));
        assert_eq!(alloc(driver, inner), OK);
        let other = empty(driver, outer, &[]);
        let (_, node) = embed(driver, outer, inner, MOVE);
        assert_eq!(clone_of(driver, outer).0, NS);
        assert_eq!(embed(driver, around, outer, CLONE).0, NS);
        unsafe {
            assert_eq!(driver.cuGraphDestroyNode(other), NS);
            assert_eq!(driver.cuGraphDestroyNode(node), NS);
            assert_eq!(driver.cuGraphAddDependencies(outer, &other, &node, 1), OK);
            assert_eq!(driver.cuGraphRemoveDependencies(outer, &other, &node, 1), NS);
        }
        let exec = instantiate(driver, outer);
        assert_eq!(refusal(driver, outer, 0).0, NS);
        unsafe { assert_eq!(driver.cuGraphExecDestroy(exec), OK) };
        let exec = instantiate(driver, outer);
        unsafe { assert_eq!(driver.cuGraphExecDestroy(exec), OK) };
        // The rules go up as far as graphs lie in each other.
        assert_eq!(embed(driver, around, outer, MOVE).0, OK);
        assert_eq!(clone_of(driver, around).0, NS);
        destroy(driver, &[around]);
    });
}

#[test]
fn another_graph_for_a_child_node() {
    leaves_nothing("clones_and_children::another_graph_for_a_child_node", || {
        let driver = &session();
        let (outer, inner, next, last) = (graph(driver), graph(driver), graph(driver), graph(driver));
        empty(driver, next, &[]);
        let deep = empty(driver, next, &[]);
        empty(driver, last, &[]);
        let (_, node) = embed(driver, outer, inner, CLONE);
        let first = embedded(driver, node);
        unsafe {
            assert_eq!(driver.cuGraphNodeSetParams(node, &mut child_params(next, CLONE)), OK);
            assert_eq!(driver.cuGraphGetNodes(first, null_mut(), &mut 0), IV);
            let second = embedded(driver, node);
            assert_eq!(nodes(driver, second).len(), 2);
            assert_eq!(find(driver, deep, second).0, OK);
            // Its own graph, once more.
            assert_eq!(driver.cuGraphNodeSetParams(node, &mut child_params(second, CLONE)), NS);
            assert_eq!(embedded(driver, node), second);
            assert_eq!(driver.cuGraphNodeSetParams(node, &mut child_params(last, MOVE)), OK);
            assert_eq!(embedded(driver, node), last);
            assert_eq!(driver.cuGraphDestroy(last), IV);
            assert_eq!(driver.cuGraphNodeSetParams(node, &mut child_params(null_mut(), CLONE)), IV);
            branch(driver, inner, inner);
            for ownership in [CLONE, MOVE] {
                assert_eq!(driver.cuGraphNodeSetParams(node, &mut child_params(inner, ownership)), NS);
            }
            assert_eq!(embedded(driver, node), last);
            assert_eq!(nodes(driver, last).len(), 1);
        }
        destroy(driver, &[outer, inner, next]);
    });
}

#[test]
fn graphs_moved_into_themselves_are_lost() {
    alone("clones_and_children::graphs_moved_into_themselves_are_lost", || {
        let driver = &session();
        let (own, one, two) = (graph(driver), graph(driver), graph(driver));
        assert_eq!(embed(driver, own, own, MOVE).0, OK);
        assert_eq!(embed(driver, two, one, MOVE).0, OK);
        assert_eq!(embed(driver, one, two, MOVE).0, OK);
        for graph in [own, one, two] {
            assert_eq!(unsafe { driver.cuGraphDestroy(graph) }, IV);
            assert_eq!(refusal(driver, graph, 0).0, NS);
        }
    });
}

#[test]
fn user_objects_follow_the_graphs() {
    leaves_nothing("clones_and_children::user_objects_follow_the_graphs", || {
        let driver = &session();
        let hold = |graph: CUgraph| {
            let (object, ended) = user_object(driver, 1);
            assert_eq!(unsafe { driver.cuGraphRetainUserObject(graph, object, 1, 1) }, OK);
            ended
        };
        let (outer, inner, other) = (graph(driver), graph(driver), graph(driver));
        let of_inner = hold(inner);
        let (_, node) = embed(driver, outer, inner, CLONE);
        let of_embedded = hold(embedded(driver, node));
        let (_, clone) = clone_of(driver, outer);
        let exec = instantiate(driver, outer);
        destroy(driver, &[inner, outer]);
        // The clone and the executable have all of them.
        assert!(of_inner.try_recv().is_err() && of_embedded.try_recv().is_err());
        destroy(driver, &[clone]);
        assert!(of_inner.try_recv().is_err() && of_embedded.try_recv().is_err());
        unsafe { assert_eq!(driver.cuGraphExecDestroy(exec), OK) };
        assert!(of_inner.try_recv().is_ok() && of_embedded.try_recv().is_ok());

        // A moved child keeps its own; another graph for the node ends them.
        let inner = graph(driver);
        let of_moved = hold(inner);
        let (_, node) = embed(driver, other, inner, MOVE);
        assert!(of_moved.try_recv().is_err());
        let next = graph(driver);
        let of_next = hold(next);
        unsafe { assert_eq!(driver.cuGraphNodeSetParams(node, &mut child_params(next, MOVE)), OK) };
        assert!(of_moved.try_recv().is_ok());
        // So does the end of a node, unless an executable has them.
        let exec = instantiate(driver, other);
        unsafe { assert_eq!(driver.cuGraphDestroyNode(node), OK) };
        assert!(of_next.try_recv().is_err());
        unsafe { assert_eq!(driver.cuGraphExecDestroy(exec), OK) };
        assert!(of_next.try_recv().is_ok());
        destroy(driver, &[other]);
    });
}

#[test]
fn a_child_of_an_executable_exchanges_its_user_objects() {
    leaves_nothing("clones_and_children::a_child_of_an_executable_exchanges_its_user_objects", || {
        let driver = &session();
        // A graph with a graph in it, each with an object.
        let nested = || {
            let (own, inner) = (graph(driver), graph(driver));
            empty(driver, inner, &[]);
            let news = [own, inner].map(|graph| {
                let (object, ended) = user_object(driver, 1);
                assert_eq!(unsafe { driver.cuGraphRetainUserObject(graph, object, 1, 1) }, OK);
                ended
            });
            assert_eq!(embed(driver, own, inner, MOVE).0, OK);
            (own, news)
        };
        let (outer, (first, of_first), (second, of_second)) = (graph(driver), nested(), nested());
        let (_, node) = embed(driver, outer, first, MOVE);
        let exec = instantiate(driver, outer);
        unsafe {
            assert_eq!(driver.cuGraphExecChildGraphNodeSetParams(exec, node, second), OK);
            destroy(driver, &[outer, second]);
            assert!(of_first.iter().all(|ended| ended.try_recv().is_ok()));
            assert!(of_second.iter().all(|ended| ended.try_recv().is_err()));
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
        }
        assert!(of_second.iter().all(|ended| ended.try_recv().is_ok()));
    });
}

#[test]
fn a_parent_cannot_be_embedded_in_its_child() {
    aborts("clones_and_children::a_parent_cannot_be_embedded_in_its_child", "embedded in itself", || {
        let driver = &session();
        let (outer, inner) = (graph(driver), graph(driver));
        let (_, node) = embed(driver, outer, inner, CLONE);
        let _ = embed(driver, embedded(driver, node), outer, CLONE);
    });
}

#[test]
fn a_child_node_cannot_be_set_to_its_own_graph() {
    aborts("clones_and_children::a_child_node_cannot_be_set_to_its_own_graph", "embedded in itself", || {
        let driver = &session();
        let (outer, inner) = (graph(driver), graph(driver));
        let (_, node) = embed(driver, outer, inner, CLONE);
        let _ = unsafe { driver.cuGraphNodeSetParams(node, &mut child_params(outer, CLONE)) };
    });
}

#[test]
fn a_destroyed_original_cannot_be_looked_up() {
    aborts("clones_and_children::a_destroyed_original_cannot_be_looked_up", "looked up in a clone", || {
        let driver = &session();
        let own = graph(driver);
        let node = empty(driver, own, &[]);
        let (_, clone) = clone_of(driver, own);
        unsafe { assert_eq!(driver.cuGraphDestroyNode(node), OK) };
        let _ = find(driver, node, clone);
    });
}
