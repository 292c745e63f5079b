//! Every operation of the crate in each of the six states.

use cuda_graph::{
    ChildGraphNode, ContextExt, EdgeKind, EmptyNode, Graph, GraphExec, InstantiateOptions, KernelNode,
    MemcpyNode, MemsetNode,
};
use cuda_handles::{Image, Stream};
use cuda_launch::{kernel, params, per};
use cuda_tests::SMALL;
use cuda_tests::states::{
    CALLS, CHECKS, LEN, PERMITTED, PURE, Refusal, Row, Things, done, drops, prepared, row,
};

mod adopted;
mod beside_captures;
mod calls;
mod captures;
mod conditionals;
mod edges;
mod graph_memory;
mod hierarchy;
mod lost_and_forked;
mod memory;
mod options;
mod params;
mod pools;
#[cfg(unix)]
mod semaphores;
mod updates;
mod whole_updates;

cuda_tests::six_states!(rows);

const N: u32 = LEN as u32;

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in Image::Ptx(SMALL);

    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
}

fn empty(things: &Things) -> Result<(Graph, EmptyNode, EmptyNode), Refusal> {
    let graph = things.context.graph()?;
    let (first, second) = (graph.root().empty()?, graph.root().empty()?);
    Ok((graph, first, second))
}

/// A graph with one node of each kind.
fn nodes(things: &Things) -> Result<(Graph, MemsetNode, MemcpyNode, KernelNode), Refusal> {
    let graph = things.context.graph()?;
    let fill = graph.root().fill(&things.buffer, 1)?;
    let copy = fill.then().copy(things.buffer.slice(..8)?, things.buffer.slice(8..16)?)?;
    let params = params![&things.buffer, N];
    // SAFETY: the arguments are the kernel's, and the count is the buffer's.
    let kernel = unsafe { copy.then().launch_untyped(&things.increment, per(LEN, 32), params) }?;
    kernel.then().empty()?;
    Ok((graph, fill, copy, kernel))
}

fn drawn(things: &Things) -> Result<Graph, Refusal> {
    Ok(nodes(things)?.0)
}

fn executable(things: &Things) -> Result<GraphExec, Refusal> {
    Ok(drawn(things)?.instantiate()?)
}

/// An executable with memory of this home that its first launch elsewhere has to wait for.
fn unsettled_at(home: &Stream) -> Result<GraphExec, Refusal> {
    let graph = home.context().graph()?;
    graph.root().fill(&home.zeros::<u32>(LEN)?, 1)?;
    Ok(graph.instantiate()?)
}

fn unsettled(things: &Things) -> Result<GraphExec, Refusal> {
    unsettled_at(&things.context.stream()?)
}

fn rows() -> Vec<Row> {
    [
        drawing(),
        calls::rows(),
        captures::rows(),
        edges::rows(),
        memory::rows(),
        graph_memory::rows(),
        nesting(),
        adopted::rows(),
        hierarchy::rows(),
        options::rows(),
        pools::rows(),
        params::rows(),
        conditionals::rows(),
        crate::loops::by_host::states::rows(),
        #[cfg(unix)]
        semaphores::rows(),
        updates::rows(),
        reading(),
        running(),
        whole_updates::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn drawing() -> Vec<Row> {
    vec![
        row("Context::graph", CALLS, |things| done(things.context.graph()?)),
        prepared("Frontier::empty", PERMITTED, empty, |_, (graph, ..)| done(graph.root().empty()?)),
        prepared("Frontier::fill", CALLS, empty, |things, (graph, ..)| {
            done(graph.root().fill(&things.buffer, 1)?)
        }),
        prepared("Frontier::copy", CALLS, empty, |things, (graph, ..)| {
            let (from, to) = (things.buffer.slice(..8)?, things.buffer.slice(8..16)?);
            done(graph.root().copy(from, to)?)
        }),
        prepared("Frontier::launch_untyped", CALLS, empty, |things, (graph, ..)| {
            let params = params![&things.buffer, N];
            // SAFETY: the graph is never launched.
            done(unsafe { graph.root().launch_untyped(&things.increment, per(LEN, 32), params) }?)
        }),
        prepared(
            "Frontier::launch",
            CALLS,
            |things| Ok((things.context.graph()?, increment::load(&things.context)?)),
            |things, (graph, kernel)| {
                done(graph.root().launch(&kernel, per(LEN, 32), (&things.buffer, N))?)
            },
        ),
        prepared(
            "Frontier::launch_unchecked, KernelNode::set_unchecked",
            CALLS,
            |things| Ok((things.context.graph()?, increment::load(&things.context)?)),
            |things, (graph, kernel)| {
                let arguments = (&things.buffer, N);
                // SAFETY: the kernel is declared as safe.
                unsafe {
                    let node = graph.root().launch_unchecked(&kernel, per(LEN, 32), arguments)?;
                    done(node.set_unchecked(&kernel, per(LEN, 32), arguments)?)
                }
            },
        ),
        prepared("Graph::after, after_all, after_edges", PURE, empty, |_, (graph, first, second)| {
            drop((graph.after([&first, &second])?, graph.after_all([&*first])?));
            done(graph.after_all([(&*first, EdgeKind::Full)])?)
        }),
        prepared("Graph::add_edge", PERMITTED, empty, |_, (graph, first, second)| {
            Ok(graph.add_edge(&first, &second)?)
        }),
        prepared(
            "Graph::remove_edge",
            PERMITTED,
            |things| {
                let (graph, first, _) = empty(things)?;
                let last = first.then().empty()?;
                Ok((graph, first, last))
            },
            |_, (graph, first, last)| Ok(graph.remove_edges(&[(&first, &last)])?),
        ),
        prepared("Node::remove", CALLS, empty, |_, (_, first, _)| Ok(first.remove()?)),
    ]
}

/// A graph with a node of each kind, and a child with such a graph in it.
fn nested(things: &Things) -> Result<(Graph, Graph, ChildGraphNode), Refusal> {
    let (source, graph) = (drawn(things)?, things.context.graph()?);
    let child = graph.root().child(&source)?;
    Ok((graph, source, child))
}

fn nesting() -> Vec<Row> {
    vec![
        prepared("Frontier::child", CALLS, nested, |_, (graph, source, _)| {
            done(graph.root().child(&source)?)
        }),
        prepared("Frontier::child_moved", CALLS, nested, |_, (graph, source, _)| {
            if !crate::common::chains::moves() {
                return done(graph.root().child(&source)?);
            }
            done(graph.root().child_moved(source)?)
        }),
        prepared("ChildGraphNode::set_graph", CALLS, nested, |_, (_, source, child)| {
            Ok(child.set_graph(&source)?)
        }),
        prepared("ChildGraphNode::remove", CALLS, nested, |_, (.., child)| Ok(child.remove()?)),
        prepared("ChildGraphNode::embedded, Graph::parent", PURE, nested, |_, (.., child)| {
            done(child.embedded()?.parent()?)
        }),
        prepared("Graph::find_clone_of", PURE, nested, |_, (_, source, child)| {
            // Where nothing is found, the table was looked into all the same.
            drop(child.embedded()?.find_clone_of(&child));
            drop(source);
            Ok(())
        }),
        prepared("Node::keep", PURE, nested, |things, (.., child)| Ok(child.keep(&things.buffer)?)),
        prepared("Graph::children", CALLS, nested, |_, (graph, ..)| done(graph.children()?)),
        prepared("Graph::clone_graph", CALLS, nested, |_, (graph, ..)| done(graph.clone_graph()?)),
        prepared("Graph::lend", PERMITTED, nested, |_, (graph, ..)| done(graph.lend()?)),
        prepared(
            "Graph::from_raw of a known one",
            CHECKS,
            |things| {
                let graph = drawn(things)?;
                Ok((graph.lend()?.expose_provenance(), graph))
            },
            |things, (raw, _graph)| {
                let raw = core::ptr::with_exposed_provenance_mut(raw);
                // SAFETY: the graph lives as long as the handle.
                done(unsafe { Graph::from_raw(&things.context, raw) }?)
            },
        ),
        drops("drop of a graph with a child", nested),
        drops("drop of a lent graph", |things| {
            let graph = nested(things)?.0;
            graph.lend()?;
            Ok(graph)
        }),
    ]
}

fn reading() -> Vec<Row> {
    vec![
        prepared("Graph::nodes", CALLS, drawn, |_, graph| done(graph.nodes()?)),
        prepared("Graph::edges", CALLS, drawn, |_, graph| done(graph.edges()?)),
        prepared("Graph::to_dot", CALLS, drawn, |_, graph| done(graph.to_dot()?)),
        prepared("Graph::len, is_empty", CALLS, drawn, |_, graph| {
            graph.len()?;
            done(graph.is_empty()?)
        }),
        prepared("KernelNode::kernel, config", PURE, nodes, |_, (.., kernel)| {
            drop((kernel.kernel()?, kernel.config()?));
            Ok(())
        }),
        prepared("MemcpyNode::source, destination, bytes", PURE, nodes, |_, (_, _, copy, _)| {
            done((copy.source()?, copy.destination()?, copy.bytes()?))
        }),
        prepared("MemsetNode::address, value, element_width, count", PURE, nodes, |_, (_, fill, ..)| {
            done((fill.address()?, fill.value()?, fill.element_width()?, fill.count()?))
        }),
        prepared("Node::predecessors, successors", CALLS, empty, |_, (_, first, _)| {
            drop((first.predecessors()?, first.successors()?));
            Ok(())
        }),
        prepared("Node::name, kind, is_removed, clone", PURE, empty, |_, (_, first, _)| {
            drop((first.name(), first.kind(), first.is_removed(), first.clone()));
            Ok(())
        }),
        prepared("Graph::keep, clone, root", PURE, drawn, |things, graph| {
            graph.keep(&things.buffer);
            drop((graph.clone(), graph.root()));
            Ok(())
        }),
    ]
}

fn running() -> Vec<Row> {
    vec![
        prepared("Graph::instantiate", CALLS, drawn, |_, graph| done(graph.instantiate()?)),
        prepared("Graph::instantiate_with", CALLS, drawn, |_, graph| {
            done(graph.instantiate_with(InstantiateOptions::new().auto_free())?)
        }),
        prepared("GraphExec::driver_options", CALLS, executable, |_, mut exec| done(exec.driver_options()?)),
        prepared("GraphExec::launch", PERMITTED, executable, |things, mut exec| {
            Ok(exec.launch(&things.home)?)
        }),
        // The first wait for a stream makes the event that it keeps for this.
        prepared("GraphExec::launch that has to wait", CALLS, unsettled, |things, mut exec| {
            Ok(exec.launch(&things.other)?)
        }),
        prepared(
            "GraphExec::launch that has to wait once more",
            PERMITTED,
            |things| {
                let home = things.context.stream()?;
                things.other.wait_for(&home)?;
                unsettled_at(&home)
            },
            |things, mut exec| Ok(exec.launch(&things.other)?),
        ),
        prepared("GraphExec::upload", PERMITTED, executable, |things, mut exec| {
            Ok(exec.upload(&things.home)?)
        }),
        drops("drop of a graph", drawn),
        drops("drop of an executable", executable),
        drops("drop of an executable that has run", |things| {
            let mut exec = executable(things)?;
            exec.launch(&things.home)?;
            Ok(exec)
        }),
        drops("drop of an executable with the only owner of its memory", unsettled),
    ]
}
