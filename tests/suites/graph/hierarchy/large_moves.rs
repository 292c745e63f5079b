//! Large graphs moved into small ones, which take over their table, and the other way round.

use cuda_graph::{ContextExt, Error, Graph, MemoryError, Node, NodeError};
use cuda_handles::{Context, Owner};
use cuda_tests::{SOON, count, is_soft, needs, no_leaks, setup, until};

/// A chain with a child graph in it, the names of whose nodes are told with a mark.
fn chain(context: &Context, nodes: usize, mark: &str) -> (Graph, Vec<Node>) {
    let graph = context.graph().unwrap();
    let inner = context.graph().unwrap();
    inner.root().empty().unwrap().named(format!("inside {mark}"));
    let mut all: Vec<Node> = vec![graph.root().child(&inner).unwrap().into()];
    for place in 1..nodes {
        let node = all[place - 1].then().empty().unwrap();
        all.push(node.named(format!("{mark} {place}")).into());
    }
    (graph, all)
}

/// Whether a graph is still the chain.
fn assert_chain(graph: &Graph, nodes: usize, mark: &str) {
    let all = graph.nodes().unwrap();
    assert_eq!((all.len(), graph.edges().unwrap().len()), (nodes, nodes - 1));
    for (place, node) in all.iter().enumerate().skip(1) {
        assert_eq!(node.name(), format!("{mark} {place}"));
        assert_eq!(node.predecessors().unwrap()[0], all[place - 1]);
        assert_eq!(node.graph(), graph);
    }
    let [child] = graph.children().unwrap().try_into().unwrap();
    let inside = child.embedded().unwrap();
    assert_eq!(inside.parent().unwrap(), Some(all[0].clone()));
    assert_eq!(inside.nodes().unwrap()[0].name(), format!("inside {mark}"));
}

/// Whichever of both is larger: the handles of the graph around stand for what they stood for, and
/// the nodes of the moved one are found.
#[test]
fn handles_stay_what_they_were_whichever_graph_is_larger() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        for (outside, inside) in [(3, 2), (2, 60), (60, 2), (30, 200), (200, 30)] {
            let (held, kept) = (std::sync::Arc::new(()), std::sync::Arc::new(()));
            let (graph, nodes) = chain(&context, outside, "outer");
            let gone = graph.root().empty().unwrap().named("gone");
            gone.remove().unwrap();
            let around = graph.clone_graph().unwrap();
            nodes[0].keep(Owner::other(held.clone())).unwrap();
            let (moved, moved_nodes) = chain(&context, inside, "inner");
            let clone = moved.clone_graph().unwrap();
            moved_nodes[inside - 1].keep(Owner::other(kept.clone())).unwrap();
            let [before] = moved.children().unwrap().try_into().unwrap();
            let deep = before.embedded().unwrap();
            let [deep_node] = deep.nodes().unwrap().try_into().unwrap();

            let child = nodes[outside - 1].then().child_moved(moved.clone()).unwrap();
            let embedded = child.embedded().unwrap();
            assert_eq!(graph.len().unwrap(), outside + 1);
            assert!(gone.is_removed() && !nodes.iter().any(|node| node.is_removed()));
            assert_eq!(nodes[1].name(), "outer 1");
            assert_eq!(nodes[outside - 1].successors().unwrap()[0], *child);
            assert_chain(&embedded, inside, "inner");
            assert_eq!(moved.len(), Err(Error::Node(NodeError::GraphMoved)));
            // Those of the moved graph are found by their old handles, those of others are not.
            let now = embedded.nodes().unwrap();
            for (node, now) in moved_nodes.iter().zip(&now) {
                assert_eq!(embedded.find_clone_of(node).as_ref(), Ok(now));
                assert!(matches!(graph.find_clone_of(node), Err(Error::Node(NodeError::NotCloned { .. }))));
            }
            let [inner] = embedded.children().unwrap().try_into().unwrap();
            let inner = inner.embedded().unwrap();
            assert_eq!(inner.find_clone_of(&deep_node).unwrap(), inner.nodes().unwrap()[0]);
            assert!(matches!(
                embedded.find_clone_of(&deep_node),
                Err(Error::Node(NodeError::NotCloned { .. }))
            ));
            // The clones made before stay clones of what was there then.
            assert!(around.find_clone_of(&nodes[1]).is_ok());
            assert!(around.find_clone_of(&now[1]).is_err());
            assert_eq!(clone.len().unwrap(), inside);
            // And those made now know both.
            let again = graph.clone_graph().unwrap();
            assert_eq!(again.find_clone_of(&nodes[1]).unwrap().name(), "outer 1");
            let twin = again.children().unwrap().pop().unwrap().embedded().unwrap();
            assert_eq!(twin.find_clone_of(&moved_nodes[inside - 1]).unwrap().name(), now[inside - 1].name());
            // Adding and removing go on, and owners go with their nodes.
            let last = child.then().empty().unwrap();
            assert!(graph.add_edge(&last, &nodes[0]).is_err());
            drop(graph.instantiate().unwrap());
            drop((again, clone, around, twin));
            now[inside - 1].remove().unwrap();
            // The reaper drops the owners of the executable.
            let counts = || {
                cuda_handles::reaper::drain();
                (std::sync::Arc::strong_count(&kept), std::sync::Arc::strong_count(&held))
            };
            assert!(until(SOON, || counts() == (1, 2)), "{outside} around {inside}: {:?}", counts());
            child.remove().unwrap();
            assert!(matches!(embedded.len(), Err(Error::Node(NodeError::GraphRemoved))));
            assert_eq!(graph.len().unwrap(), outside + 1);
            assert_chain_outside(&nodes);
        }
    });
}

fn assert_chain_outside(nodes: &[Node]) {
    for pair in nodes.windows(2) {
        assert_eq!(pair[1].predecessors().unwrap()[0], pair[0]);
    }
}

/// Moved again and again, into graphs that are smaller and larger in turn.
#[test]
fn a_graph_that_is_moved_on_is_found_by_its_raw_value_and_runs() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(4).unwrap();
        let (mut graph, nodes) = chain(&context, 40, "first");
        let fill = nodes[39].then().fill(&buffer, 7).unwrap().named("fill");
        let mut raws = Vec::new();
        let mut lines: Vec<Node> = vec![fill.clone().into()];
        for size in [2, 90, 3, 200, 2] {
            let (outer, own) = chain(&context, size, "around");
            raws.push(graph.as_raw().unwrap());
            let child = own[size - 1].then().child_moved(graph).unwrap();
            let embedded = child.embedded().unwrap();
            lines = lines.iter().filter_map(|node| embedded.find_clone_of(node).ok()).collect();
            lines.push(own[size - 1].clone());
            graph = outer;
        }
        stream.fill(&buffer, 0).unwrap();
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [7; 4]);
        drop((graph, lines, raws));
    });
}

/// The memory of allocation nodes goes along, and is that of the graph around from then on.
#[test]
fn memory_of_a_large_graph_belongs_to_the_one_it_is_moved_into() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for size in [2, 60] {
            let (graph, nodes) = chain(&context, size, "inner");
            let (alloc, memory) = nodes[size - 1].then().alloc::<u32>(4).unwrap();
            let fill = alloc.then().fill(&memory, 5).unwrap();
            let outer = context.graph().unwrap();
            let (own, own_memory) = outer.root().alloc::<u32>(4).unwrap();
            let child = own.then().child_moved(graph).unwrap();
            let target = stream.zeros::<u32>(4).unwrap();
            let copy = child.then().copy(&memory, &target).unwrap();
            copy.then().copy(&memory, &own_memory).unwrap().then().free(&own_memory).unwrap();
            let other = context.graph().unwrap();
            assert!(matches!(
                other.root().fill(&memory, 1),
                Err(Error::Memory(MemoryError::ForeignMemory { .. }))
            ));
            assert!(matches!(
                other.root().fill(&own_memory, 1),
                Err(Error::Memory(MemoryError::ForeignMemory { .. }))
            ));
            let mut exec = outer.instantiate().unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(target.read_blocking(&stream).unwrap(), [5; 4]);
            drop((exec, fill, memory, own_memory));
        }
    });
}

/// From the inside out: each move costs what the small graph has.
#[test]
fn graphs_moved_into_one_another_from_the_inside_out_are_linear() {
    let context = setup();
    needs!(MovedGraphs);
    // How deep a driver goes, it does not say; on a GPU this is what was tried.
    let depth: u64 = if is_soft() { 20_000 } else { 256 };
    no_leaks(|| {
        let mut graph = context.graph().unwrap();
        graph.root().empty().unwrap().named("innermost");
        let ((), cost) = count(|| {
            for level in 0..depth {
                let outer = context.graph().unwrap();
                let before = outer.root().empty().unwrap().named(format!("before {level}"));
                let moved = core::mem::replace(&mut graph, outer.clone());
                let child = before.then().child_moved(moved).unwrap().named(format!("level {level}"));
                child.keep(Owner::other(level)).unwrap();
            }
        });
        assert_eq!((cost.calls("cuGraphCreate"), cost.calls("cuGraphAddNode")), (depth, 2 * depth), "{cost}");
        // Where the table changes hands the root's nodes are asked for, and before that those of a
        // few graphs.
        assert!(cost.calls("cuGraphGetNodes") <= 4 * depth + 200, "{cost}");
        let mut inner = graph.clone();
        for level in (0..depth).rev() {
            let [child] = inner.children().unwrap().try_into().unwrap();
            assert_eq!(child.name(), format!("level {level}"));
            inner = child.embedded().unwrap();
        }
        assert_eq!(inner.nodes().unwrap()[0].name(), "innermost");
        assert!(graph.check().unwrap().is_clean());
        drop(graph.instantiate().unwrap());
        drop((inner, graph));
    });
}

/// A node of the moved graph that was removed before is nothing's: neither by its own handle nor by
/// that of a node that it was a clone of.
#[test]
fn removed_nodes_of_a_moved_graph_are_not_those_of_the_graph_around() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        for inside in [2, 60] {
            let (original, originals) = chain(&context, inside.max(4), "original");
            let moved = original.clone_graph().unwrap();
            let mut gone: Vec<Node> = Vec::new();
            for node in &originals[..3] {
                gone.push(moved.find_clone_of(node).unwrap());
            }
            gone.iter().for_each(|node| node.remove().unwrap());
            let (outer, own) = chain(&context, 4, "outer");
            let child = own[3].then().child_moved(moved).unwrap();
            let (further, others) = chain(&context, 6, "further");
            let mut embedded = child.embedded().unwrap();
            for moves in 0..2 {
                for (node, gone) in originals.iter().zip(&gone) {
                    let found = [embedded.find_clone_of(node), embedded.find_clone_of(gone)];
                    for found in found {
                        let is_none = matches!(
                            found,
                            Err(Error::Node(NodeError::Removed { .. })
                                | Error::Node(NodeError::NotCloned { .. }))
                        );
                        assert!(is_none, "{inside}, {moves} moves: {found:?}");
                    }
                }
                assert!(embedded.find_clone_of(&originals[3]).is_ok());
                if moves == 0 {
                    let around = others[5].then().child_moved(outer.clone()).unwrap();
                    let outer = around.embedded().unwrap();
                    embedded = outer.children().unwrap().pop().unwrap().embedded().unwrap();
                }
            }
            drop((further, own));
        }
    });
}

/// The raw value of a graph that was removed from the moved one, given to another graph, is not
/// that of a graph of the one around.
#[test]
fn raw_values_of_removed_graphs_do_not_stand_for_graphs_around() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        let (moved, nodes) = chain(&context, 60, "moved");
        let before = moved.children().unwrap().pop().unwrap().embedded().unwrap().as_raw().unwrap();
        nodes[0].remove().unwrap();
        let (outer, own) = chain(&context, 3, "outer");
        let _child = own[2].then().child_moved(moved).unwrap();
        // Other code's graphs, until the driver gives one the address.
        let mut raws = Vec::new();
        for _ in 0..64 {
            let mut raw = core::ptr::null_mut();
            // SAFETY: the out pointer is valid.
            let code = unsafe { context.driver().cuGraphCreate(&raw mut raw, 0) };
            assert!(code.is_success());
            raws.push(raw);
            if raw == before {
                // SAFETY: it lives until all handles are gone.
                let graph = unsafe { Graph::from_raw(&context, raw) }.unwrap();
                assert_eq!((graph.parent().unwrap(), graph.len().unwrap()), (None, 0));
                break;
            }
        }
        for raw in raws {
            // SAFETY: nobody uses it any more.
            let _ = unsafe { context.driver().cuGraphDestroy(raw) };
        }
        drop(outer);
    });
}

/// The graph around has more graphs in its nodes than the large one that is moved into it.
#[test]
fn graphs_in_nodes_are_kept_apart_however_many_there_are_around() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        for around in [0, 1, 2, 3, 6] {
            let (of_graph, of_child) = (std::sync::Arc::new(()), std::sync::Arc::new(()));
            let small = context.graph().unwrap();
            small.root().empty().unwrap();
            let outer = context.graph().unwrap();
            for _ in 0..around {
                outer.root().child(&small).unwrap();
            }
            let (large, nodes) = chain(&context, 100, "large");
            large.keep(Owner::other(of_graph.clone()));
            let [child] = large.children().unwrap().try_into().unwrap();
            child.embedded().unwrap().keep(Owner::other(of_child.clone()));
            let node = outer.root().child_moved(large).unwrap();
            let embedded = node.embedded().unwrap();
            assert_chain(&embedded, 100, "large");
            assert_eq!(outer.children().unwrap().len(), around + 1);
            for child in outer.children().unwrap().iter().take(around) {
                assert_eq!(child.embedded().unwrap().len(), Ok(1));
            }
            let counts =
                || (std::sync::Arc::strong_count(&of_graph), std::sync::Arc::strong_count(&of_child));
            assert_eq!(counts(), (2, 2), "{around} around");
            drop((nodes, embedded, child));
            node.remove().unwrap();
            assert_eq!(counts(), (1, 1), "{around} around");
        }
    });
}
