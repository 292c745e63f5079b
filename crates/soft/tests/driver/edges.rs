//! Edges: which are allowed, and the queries.

use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_sys::CUgraphNodeType as T;
use cuda_sys::*;

const LOSSY: CUresult = CUresult::CUDA_ERROR_LOSSY_QUERY;

fn data(from_port: u8, type_: u8) -> CUgraphEdgeData {
    CUgraphEdgeData { from_port, type_, ..Default::default() }
}

/// Calls `call` with the two ends of the edges and their data, which may be none.
fn with_edges(
    pairs: &[(CUgraphNode, CUgraphNode)],
    with: &[CUgraphEdgeData],
    call: impl FnOnce(*const CUgraphNode, *const CUgraphNode, *const CUgraphEdgeData, usize) -> CUresult,
) -> CUresult {
    let (from, to): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    let with = if with.is_empty() { null() } else { with.as_ptr() };
    call(from.as_ptr(), to.as_ptr(), with, pairs.len())
}

fn connect(
    driver: &Driver,
    graph: CUgraph,
    pairs: &[(CUgraphNode, CUgraphNode)],
    with: &[CUgraphEdgeData],
) -> CUresult {
    with_edges(pairs, with, |from, to, data, count| unsafe {
        driver.cuGraphAddDependencies_v12030(graph, from, to, data, count).unwrap()
    })
}

fn disconnect(
    driver: &Driver,
    graph: CUgraph,
    pairs: &[(CUgraphNode, CUgraphNode)],
    with: &[CUgraphEdgeData],
) -> CUresult {
    with_edges(pairs, with, |from, to, data, count| unsafe {
        driver.cuGraphRemoveDependencies_v12030(graph, from, to, data, count).unwrap()
    })
}

/// Adds a kernel node by the generic call with edge data.
fn behind(
    driver: &Driver,
    graph: CUgraph,
    after: &[(CUgraphNode, CUgraphEdgeData)],
    function: CUfunction,
) -> (CUresult, CUgraphNode) {
    let mut params = generic(T::CU_GRAPH_NODE_TYPE_KERNEL);
    params.__bindgen_anon_1.kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        ..Default::default()
    };
    let (nodes, data): (Vec<_>, Vec<_>) = after.iter().copied().unzip();
    let mut node = null_mut();
    let answer = unsafe {
        driver.cuGraphAddNode_v12030(
            &mut node,
            graph,
            nodes.as_ptr(),
            data.as_ptr(),
            nodes.len(),
            &mut params,
        )
    };
    (answer.unwrap(), node)
}

#[test]
fn one_edge_at_a_time() {
    leaves_nothing("edges::one_edge_at_a_time", || {
        let driver = &session();
        let (own, other) = (graph(driver), graph(driver));
        let [a, b, c, gone] = [(); 4].map(|()| empty(driver, own, &[]));
        let foreign = empty(driver, other, &[]);
        unsafe { assert_eq!(driver.cuGraphDestroyNode(gone), OK) };
        assert_eq!(connect(driver, own, &[(a, b)], &[]), OK);
        let expected = vec![(a, b, data(0, 0))];
        for (what, graph, pair, with) in [
            ("twice", own, (a, b), vec![]),
            ("of another kind", own, (a, b), vec![data(1, 1)]),
            ("to itself", own, (a, a), vec![]),
            ("to null", own, (a, null_mut()), vec![]),
            ("from null", own, (null_mut(), a), vec![]),
            ("to a destroyed node", own, (a, gone), vec![]),
            ("between graphs", own, (a, foreign), vec![]),
            ("the wrong graph", other, (a, c), vec![]),
            ("no graph", null_mut(), (a, c), vec![]),
        ] {
            assert_eq!(connect(driver, graph, &[pair], &with), IV, "{what}");
            assert_eq!(edges(driver, own), expected, "{what}");
        }
        for (what, graph, pair) in [
            ("a missing edge", own, (b, c)),
            ("the other way round", own, (b, a)),
            ("of a destroyed node", own, (a, gone)),
            ("the wrong graph", other, (a, b)),
        ] {
            assert_eq!(disconnect(driver, graph, &[pair], &[]), IV, "{what}");
            assert_eq!(edges(driver, own), expected, "{what}");
        }
        unsafe {
            assert_eq!(driver.cuGraphAddDependencies(own, null(), &c, 1), IV);
            assert_eq!(driver.cuGraphAddDependencies(own, &a, null(), 1), IV);
            assert_eq!(driver.cuGraphAddDependencies(own, null(), null(), 0), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuGraphDestroy(other), OK);
        }
    });
}

#[test]
fn several_at_once_stop_at_the_bad_one() {
    leaves_nothing("edges::several_at_once_stop_at_the_bad_one", || {
        let driver = &session();
        let own = graph(driver);
        let [a, b, c, d] = [(); 4].map(|()| empty(driver, own, &[]));
        let plain = data(0, 0);
        assert_eq!(connect(driver, own, &[(a, b), (b, c), (a, a), (c, d)], &[]), IV);
        assert_eq!(edges(driver, own), [(a, b, plain), (b, c, plain)]);
        // Data that is wrong is seen before any edge is added.
        assert_eq!(connect(driver, own, &[(c, d), (a, d), (a, c)], &[plain, data(1, 0), plain]), IV);
        assert_eq!(edges(driver, own), [(a, b, plain), (b, c, plain)]);
        assert_eq!(connect(driver, own, &[(c, d)], &[plain]), OK);
        assert_eq!(disconnect(driver, own, &[(c, d), (a, d), (a, b)], &[]), IV);
        assert_eq!(edges(driver, own), [(a, b, plain), (b, c, plain)]);
        assert_eq!(unsafe { driver.cuGraphDestroy(own) }, OK);
    });
}

#[test]
fn programmatic_edges_connect_kernels() {
    leaves_nothing("edges::programmatic_edges_connect_kernels", || {
        let driver = &session();
        let library = library(driver);
        let function = function(driver, library, "nothing");
        let own = graph(driver);
        let (_, first) = behind(driver, own, &[], function);
        let plain = empty(driver, own, &[]);
        let (_, target) = behind(driver, own, &[], function);
        for (what, from, to, with, answer) in [
            ("programmatic", first, target, data(1, 1), OK),
            ("launch order", first, target, data(2, 0), OK),
            ("launch order, programmatic", first, target, data(2, 1), OK),
            ("full", first, target, data(0, 0), OK),
            ("a port without the type", first, target, data(1, 0), IV),
            ("the type without a port", first, target, data(0, 1), IV),
            ("port 3", first, target, data(3, 1), IV),
            ("type 2", first, target, data(0, 2), IV),
            ("a port of arrival", first, target, CUgraphEdgeData { to_port: 1, ..data(1, 1) }, IV),
            (
                "a reserved byte",
                first,
                target,
                CUgraphEdgeData { reserved: [0, 0, 1, 0, 0], ..data(1, 1) },
                IV,
            ),
            ("from another type", plain, target, data(1, 1), IV),
            ("to another type", first, plain, data(1, 1), IV),
            ("a full one to another type", first, plain, data(0, 0), OK),
        ] {
            let before = edges(driver, own);
            assert_eq!(connect(driver, own, &[(from, to)], &[with]), answer, "{what}");
            if answer == OK {
                assert_eq!(edges(driver, own).len(), 1 + before.len(), "{what}");
                assert!(edges(driver, own).contains(&(from, to, with)), "{what}");
                // Whatever data is given to the removal.
                assert_eq!(disconnect(driver, own, &[(from, to)], &[data(2, 1)]), OK, "{what}");
            }
            assert_eq!(edges(driver, own), before, "{what}");
            // The same by the add of a node.
            if to == target {
                let (found, node) = behind(driver, own, &[(from, with)], function);
                assert_eq!(found, answer, "{what}, by the add");
                if answer == OK {
                    assert_eq!(edges(driver, own), [(from, node, with)], "{what}");
                    assert_eq!(unsafe { driver.cuGraphDestroyNode(node) }, OK);
                }
            }
        }
        unsafe {
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
        }
    });
}

#[test]
fn all_edges_of_a_call_get_the_data_of_the_first() {
    leaves_nothing("edges::all_edges_of_a_call_get_the_data_of_the_first", || {
        let driver = &session();
        let library = library(driver);
        let function = function(driver, library, "nothing");
        let own = graph(driver);
        let [a, b, c, d, e] = [(); 5].map(|()| behind(driver, own, &[], function).1);
        // Not in the order of the nodes.
        let pairs = [(c, e), (a, e), (d, e), (b, e)];
        let mut kinds = [data(0, 0), data(1, 1), data(2, 0), data(2, 1)];
        for _ in 0..4 {
            assert_eq!(connect(driver, own, &pairs, &kinds), OK);
            let listed = edges(driver, own);
            assert_eq!(listed, pairs.map(|(from, to)| (from, to, kinds[0])));
            // One by one, each gets its own.
            assert_eq!(disconnect(driver, own, &pairs, &[]), OK);
            for (pair, kind) in pairs.iter().zip(kinds) {
                assert_eq!(connect(driver, own, &[*pair], &[kind]), OK);
            }
            let listed = edges(driver, own);
            assert!(pairs.iter().zip(kinds).all(|((from, to), kind)| listed.contains(&(*from, *to, kind))));
            // By the add of a node, too.
            let after: Vec<_> = pairs.iter().zip(kinds).map(|((from, _), kind)| (*from, kind)).collect();
            let (answer, node) = behind(driver, own, &after, function);
            assert_eq!(answer, OK);
            let entering = edges(driver, own).into_iter().filter(|edge| edge.1 == node);
            assert!(entering.map(|(from, _, kind)| (from, kind)).eq(after));
            assert_eq!(unsafe { driver.cuGraphDestroyNode(node) }, OK);
            // Data that differs is refused where edges are removed, that of the edges, too.
            let before = edges(driver, own);
            assert_eq!(disconnect(driver, own, &pairs, &kinds), IV);
            assert_eq!(edges(driver, own), before);
            assert_eq!(disconnect(driver, own, &pairs, &[]), OK);
            assert!(edges(driver, own).is_empty());
            kinds.rotate_left(1);
        }
        unsafe {
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
        }
    });
}

#[test]
fn programmatic_edges_live_in_clones_children_and_executables() {
    leaves_nothing("edges::programmatic_edges_live_in_clones_children_and_executables", || {
        let driver = &session();
        let library = library(driver);
        let (own, outer, stream) = (graph(driver), graph(driver), stream(driver));
        let function = function(driver, library, "nothing");
        let (_, first) = behind(driver, own, &[], function);
        let (_, second) = behind(driver, own, &[(first, data(1, 1))], function);
        unsafe {
            let (mut clone, mut node, mut child) = (null_mut(), null_mut(), null_mut());
            assert_eq!(driver.cuGraphClone(&mut clone, own), OK);
            assert_eq!(driver.cuGraphAddChildGraphNode(&mut node, outer, null(), 0, own), OK);
            assert_eq!(driver.cuGraphChildGraphNodeGetGraph(node, &mut child), OK);
            for graph in [clone, child] {
                assert_eq!(edges(driver, graph)[0].2, data(1, 1));
            }
            let exec = instantiate(driver, own);
            run(driver, exec, stream);
            // From a programmatic edge to a full one and back is another shape.
            let other = graph(driver);
            let (_, one) = behind(driver, other, &[], function);
            let (_, two) = behind(driver, other, &[(one, data(0, 0))], function);
            let mut info = CUgraphExecUpdateResultInfo::default();
            let answer = driver.cuGraphExecUpdate(exec, other, &mut info);
            assert_eq!(answer, CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
            assert_eq!((info.result.0, info.errorNode, info.errorFromNode), (2, two, one));
            assert_eq!(driver.cuGraphDestroyNode(second), OK);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            for graph in [own, outer, clone, other] {
                assert_eq!(driver.cuGraphDestroy(graph), OK);
            }
            assert_eq!(driver.cuLibraryUnload(library), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn a_query_without_room_for_data_is_refused_where_it_loses_some() {
    leaves_nothing("edges::a_query_without_room_for_data_is_refused_where_it_loses_some", || {
        let driver = &session();
        let library = library(driver);
        let (own, function) = (graph(driver), function(driver, library, "nothing"));
        let (_, a) = behind(driver, own, &[], function);
        let (_, b) = behind(driver, own, &[(a, data(0, 0))], function);
        let (_, c) = behind(driver, own, &[(a, data(1, 1)), (b, data(0, 0))], function);
        let mut out = [null_mut(); 4];
        let mut to = [null_mut(); 4];
        unsafe {
            // The first dependent has a full edge, the second does not.
            for (room, answer) in [(1, OK), (2, LOSSY), (4, LOSSY)] {
                let mut count = room;
                assert_eq!(
                    driver.cuGraphNodeGetDependentNodes(a, out.as_mut_ptr(), &mut count),
                    answer,
                    "{room}"
                );
            }
            for (room, answer) in [(1, OK), (2, LOSSY), (3, LOSSY)] {
                let mut count = room;
                let found = driver.cuGraphGetEdges(own, out.as_mut_ptr(), to.as_mut_ptr(), &mut count);
                assert_eq!(found, answer, "{room}");
            }
            let mut count = 4;
            assert_eq!(driver.cuGraphNodeGetDependencies(c, out.as_mut_ptr(), &mut count), LOSSY);
            assert_eq!(
                driver.cuGraphNodeGetDependencies_v12030(c, out.as_mut_ptr(), null_mut(), &mut count),
                Ok(LOSSY)
            );
            // Counting never loses anything.
            assert_eq!(driver.cuGraphNodeGetDependencies(c, null_mut(), &mut count), OK);
            assert_eq!(count, 2);
            assert_eq!(driver.cuGraphGetEdges(own, null_mut(), null_mut(), &mut count), OK);
            assert_eq!(count, 3);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
        }
    });
}

#[test]
fn queries_fill_what_room_there_is() {
    leaves_nothing("edges::queries_fill_what_room_there_is", || {
        let driver = &session();
        let own = graph(driver);
        let [a, b, c] = [(); 3].map(|()| empty(driver, own, &[]));
        // Dependents come in the order added, not in that of creation.
        assert_eq!(connect(driver, own, &[(a, c), (a, b)], &[]), OK);
        let full: CUgraphNode = std::ptr::without_provenance_mut(8);
        type Query<'a> = &'a dyn Fn(*mut CUgraphNode, *mut usize) -> CUresult;
        let queries: [(&str, Query<'_>, Vec<CUgraphNode>); 4] = unsafe {
            [
                ("nodes", &|out, count| driver.cuGraphGetNodes(own, out, count), vec![a, b, c]),
                ("roots", &|out, count| driver.cuGraphGetRootNodes(own, out, count), vec![a]),
                ("dependents", &|out, count| driver.cuGraphNodeGetDependentNodes(a, out, count), vec![c, b]),
                ("dependencies", &|out, count| driver.cuGraphNodeGetDependencies(b, out, count), vec![a]),
            ]
        };
        for (what, query, expected) in queries {
            let mut count = 77;
            assert_eq!(query(null_mut(), &mut count), OK, "{what}");
            assert_eq!(count, expected.len(), "{what}");
            for room in 1..5 {
                let (mut out, mut count) = ([full; 6], room);
                assert_eq!(query(out.as_mut_ptr(), &mut count), OK, "{what}");
                assert_eq!(count, room.min(expected.len()), "{what}");
                assert_eq!(out[..count], expected[..count], "{what}");
                assert!(out[count..room].iter().all(|node| node.is_null()), "{what}");
                assert!(out[room..].iter().all(|node| *node == full), "{what}");
            }
            let (mut out, mut none) = ([full; 1], 0);
            assert_eq!(query(out.as_mut_ptr(), &mut none), IV, "{what}");
            assert_eq!(query(out.as_mut_ptr(), null_mut()), IV, "{what}");
        }
        unsafe {
            let (mut out, mut count) = ([full; 4], 4);
            assert_eq!(driver.cuGraphGetEdges(own, out.as_mut_ptr(), null_mut(), &mut count), IV);
            assert_eq!(driver.cuGraphGetEdges(own, null_mut(), out.as_mut_ptr(), &mut count), IV);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuGraphGetNodes(own, null_mut(), &mut count), IV);
        }
    });
}

#[test]
fn destroying_a_node_takes_its_edges_and_keeps_the_order() {
    leaves_nothing("edges::destroying_a_node_takes_its_edges_and_keeps_the_order", || {
        let driver = &session();
        let (own, stream) = (graph(driver), stream(driver));
        let a = empty(driver, own, &[]);
        let b = empty(driver, own, &[a]);
        let c = empty(driver, own, &[a, b]);
        let d = empty(driver, own, &[b, c]);
        let exec = instantiate(driver, own);
        let plain = data(0, 0);
        unsafe { assert_eq!(driver.cuGraphDestroyNode(b), OK) };
        assert_eq!(nodes(driver, own), [a, c, d]);
        assert_eq!(edges(driver, own), [(a, c, plain), (c, d, plain)]);
        unsafe {
            run(driver, exec, stream);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            run(driver, exec, stream);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn cycles_are_found_late() {
    leaves_nothing("edges::cycles_are_found_late", || {
        let driver = &session();
        let (own, outer, good) = (graph(driver), graph(driver), graph(driver));
        let a = empty(driver, own, &[]);
        let b = empty(driver, own, &[a]);
        let c = empty(driver, own, &[b]);
        assert_eq!(connect(driver, own, &[(c, b)], &[]), OK);
        let (answer, reason, node) = refusal(driver, own, 0);
        assert_eq!((answer, reason), (IV, 2));
        assert!([b, c].contains(&node));
        for _ in 0..3 {
            empty(driver, good, &[]);
        }
        let exec = instantiate(driver, good);
        unsafe {
            let (mut clone, mut node, mut info) =
                (null_mut(), null_mut(), CUgraphExecUpdateResultInfo::default());
            let answer = driver.cuGraphExecUpdate(exec, own, &mut info);
            assert_eq!((answer, info.result.0), (CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 2));
            assert_eq!(driver.cuGraphClone(&mut clone, own), OK);
            assert_eq!(driver.cuGraphAddChildGraphNode(&mut node, outer, null(), 0, own), OK);
            assert_eq!(driver.cuGraphDebugDotPrint(own, c"/dev/null".as_ptr(), 0), OK);
            assert_eq!(refusal(driver, outer, 0).1, 2);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            for graph in [own, outer, good, clone] {
                assert_eq!(driver.cuGraphDestroy(graph), OK);
            }
        }
    });
}
