//! Raw graphs that come back from other code: the library has one graph for each, whatever way they
//! come.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_graph::{ContextExt, EmbedError, Error, Graph, InteropError};
use cuda_handles::Context;
use cuda_sys::CUgraph;
use cuda_tests::{count, is_soft, needs, no_leaks, raw, settle, setup};

use crate::common::chains::moves;
use crate::common::other;

/// The graph behind a raw value.
fn taken(context: &Context, raw: CUgraph) -> cuda_graph::Result<Graph> {
    // SAFETY: the tests give graphs that outlive their handles, and change them from one thread at
    // a time.
    unsafe { Graph::from_raw(context, raw) }
}

fn taken_at(context: &Context, address: usize) -> cuda_graph::Result<Graph> {
    taken(context, core::ptr::with_exposed_provenance_mut(address))
}

/// Other code's graph with another one in a node; that one too.
fn nested() -> (CUgraph, CUgraph) {
    let (outer, inner) = (other::graph(), other::graph());
    other::empty(inner, &[]);
    let node = other::child(outer, inner);
    other::destroy(inner);
    (outer, inside(node))
}

fn inside(node: cuda_sys::CUgraphNode) -> CUgraph {
    let mut graph = core::ptr::null_mut();
    // SAFETY: the node lives and the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuGraphChildGraphNodeGetGraph(node, &raw mut graph) });
    graph
}

#[test]
fn a_lent_graph_that_is_moved_while_it_is_taken_back_stays_one() {
    /// So many that entering them takes a while.
    const NODES: usize = 1500;

    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        let outer = context.graph().unwrap();
        for _ in 0..6 {
            let source = context.graph().unwrap();
            let deep = source.root().child(&context.graph().unwrap()).unwrap().embedded().unwrap();
            (0..NODES).for_each(|_| drop(source.root().empty().unwrap()));
            let (same, address) = (source.clone(), source.lend().unwrap().expose_provenance());
            let deep_address = deep.lend().unwrap().expose_provenance();
            let (start, done) = (Barrier::new(2), AtomicBool::new(false));
            let (moved, found) = std::thread::scope(|scope| {
                let taker = scope.spawn(|| {
                    let mut found = Vec::new();
                    start.wait();
                    while !done.load(Ordering::Acquire) {
                        let [graph, deep] =
                            [address, deep_address].map(|raw| taken_at(&context, raw).unwrap());
                        if found.last() != Some(&(graph.clone(), deep.clone())) {
                            found.push((graph, deep));
                        }
                    }
                    found
                });
                start.wait();
                let moved = outer.root().child_moved(source).unwrap();
                done.store(true, Ordering::Release);
                (moved, taker.join().unwrap())
            });
            let embedded = moved.embedded().unwrap();
            let deep_now = embedded.children().unwrap()[0].embedded().unwrap();
            for (graph, inner) in &found {
                assert!(*graph == same || *graph == embedded, "{graph:?} is another one than {embedded:?}");
                assert!(*inner == deep || *inner == deep_now, "{inner:?} is another one than {deep_now:?}");
            }
            assert_eq!(taken_at(&context, address).unwrap(), embedded);
            assert_eq!(taken_at(&context, deep_address).unwrap(), deep_now);
            assert_eq!(embedded.len().unwrap(), NODES + 1);
            moved.remove().unwrap();
        }
    });
}

#[test]
fn graphs_in_nodes_are_found_by_their_raw_values_however_they_came_there() {
    let context = setup();
    no_leaks(|| {
        let is_found = |graph: &Graph| {
            let raw = graph.as_raw().unwrap();
            let (found, cost) = count(|| taken(&context, raw).unwrap());
            assert_eq!(&found, graph);
            cost.assert_calls(&[]);
        };
        let source = context.graph().unwrap();
        source.root().child(&context.graph().unwrap()).unwrap();
        let both = |graph: &Graph| {
            let outer = graph.children().unwrap().remove(0).embedded().unwrap();
            is_found(&outer);
            is_found(&outer.children().unwrap()[0].embedded().unwrap());
        };
        let graph = context.graph().unwrap();
        let child = graph.root().child(&source).unwrap();
        both(&graph);
        let clone = graph.clone_graph().unwrap();
        both(&clone);
        both(&graph);
        child.set_graph(&source).unwrap();
        both(&graph);
        if moves() {
            let outer = context.graph().unwrap();
            let moved = outer.root().child_moved(clone).unwrap();
            both(&outer);
            both(&moved.embedded().unwrap());
        }
        let (foreign, embedded) = nested();
        let adopted = taken(&context, foreign).unwrap();
        is_found(&adopted);
        assert_eq!(taken(&context, embedded).unwrap(), adopted.children().unwrap()[0].embedded().unwrap());
        drop(adopted);
        other::destroy(foreign);

        // Their addresses are given to other graphs.
        let gone = child.embedded().unwrap();
        let raw_gone = gone.as_raw().unwrap();
        child.remove().unwrap();
        let late: Vec<CUgraph> = (0..4).map(|_| other::graph()).collect();
        for &foreign in &late {
            let graph = taken(&context, foreign).unwrap();
            assert!(graph.parent().unwrap().is_none() && graph != gone, "{raw_gone:?}");
            assert_eq!(graph.as_raw().unwrap(), foreign);
        }
        late.into_iter().for_each(other::destroy);
    });
}

#[test]
fn a_graph_adopted_before_the_one_that_it_lies_in_keeps_that_one_out() {
    let context = setup();
    no_leaks(|| {
        let (outer, embedded) = nested();
        let deepest = {
            let graph = other::graph();
            let node = other::child(embedded, graph);
            other::destroy(graph);
            inside(node)
        };
        let alone = taken(&context, deepest).unwrap();
        let error = taken(&context, outer).unwrap_err();
        assert_eq!(error, Error::Interop(InteropError::AdoptedAlone { raw: deepest.addr() }));
        assert!(error.to_string().contains("adopt the graph that it lies in"), "{error}");
        assert!(matches!(taken(&context, embedded), Err(Error::Interop(InteropError::AdoptedAlone { .. }))));
        // SAFETY: nobody else destroys it.
        let owned = unsafe { Graph::from_raw_owned(&context, outer) };
        assert!(matches!(owned, Err(Error::Interop(InteropError::AdoptedAlone { .. }))));
        alone.root().empty().unwrap();
        drop(alone);
        settle();
        let adopted = taken(&context, outer).unwrap();
        let middle = adopted.children().unwrap()[0].embedded().unwrap();
        assert_eq!(taken(&context, embedded).unwrap(), middle);
        let inner = middle.children().unwrap()[0].embedded().unwrap();
        assert_eq!(taken(&context, deepest).unwrap(), inner);
        assert_eq!(inner.len().unwrap(), 1);
        assert!(matches!(inner.root().child(&adopted), Err(Error::Embed(EmbedError::EmbedsItself))));
        drop((adopted, middle, inner));
        other::destroy(outer);
    });
}

#[test]
fn a_graph_and_the_one_that_it_lies_in_adopted_at_once_are_never_two() {
    let context = setup();
    no_leaks(|| {
        let (outer, embedded) = nested();
        let (outer_address, address) = (outer.expose_provenance(), embedded.expose_provenance());
        let lock = std::sync::Mutex::new(());
        for _ in 0..300 {
            let start = Barrier::new(2);
            let adopt = |address: usize| {
                start.wait();
                // Calls on graphs of which one lies in the other must not overlap; the software
                // driver does not mind.
                let _alone = (!is_soft()).then(|| lock.lock().unwrap());
                taken_at(&context, address)
            };
            let (whole, part) = std::thread::scope(|scope| {
                let whole = scope.spawn(|| adopt(outer_address));
                let part = adopt(address).unwrap();
                (whole.join().unwrap(), part)
            });
            match whole {
                Ok(whole) => assert_eq!(part, whole.children().unwrap()[0].embedded().unwrap()),
                Err(error) => {
                    assert_eq!(error, Error::Interop(InteropError::AdoptedAlone { raw: address }));
                    assert!(part.parent().unwrap().is_none());
                }
            }
        }
        other::destroy(outer);
    });
}

#[test]
fn a_graph_that_is_known_is_not_taken_over() {
    let context = setup();
    no_leaks(|| {
        // SAFETY: the graphs live, and are taken over once at most.
        let take_over = |raw: CUgraph| unsafe { Graph::from_raw_owned(&context, raw) };
        let is_refused = |raw: CUgraph| {
            let error = take_over(raw).unwrap_err();
            assert_eq!(error, Error::Interop(InteropError::KnownAlready { raw: raw.addr() }));
        };
        let graph = context.graph().unwrap();
        let child = graph.root().child(&context.graph().unwrap()).unwrap();
        is_refused(graph.as_raw().unwrap());
        is_refused(child.embedded().unwrap().as_raw().unwrap());
        let foreign = other::graph();
        let adopted = taken(&context, foreign).unwrap();
        is_refused(foreign);
        drop(adopted);
        assert!(take_over(foreign).unwrap().is_empty().unwrap());
    });
}
