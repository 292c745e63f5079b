//! The cost of operations on large graphs, for each node.

use core::fmt;
use std::time::Instant;

use cuda_graph::{ContextExt, Edge, EdgeKind, Error, Graph, KernelNode, Node};
use cuda_handles::Context;
use cuda_launch::{params, per};

use crate::things::kernel;

/// The number of parallel chains: wide graphs are slow in the driver itself.
const LANES: usize = 32;

/// Nanoseconds for each node or edge of an operation.
#[derive(Clone, Debug)]
pub struct Scale {
    nodes: usize,
    figures: Vec<(&'static str, f64)>,
}

/// Builds, reads, changes and drops a graph of `nodes` kernel nodes, and measures each of these.
///
/// # Errors
/// Errors of the graph and of the driver.
///
/// # Panics
/// The graph is not as it should be in the end, so the figures mean nothing.
pub fn scale(context: &Context, nodes: usize) -> Result<Scale, Error> {
    let mut clock = Clock { figures: Vec::new(), last: Instant::now() };
    let graph = context.graph()?;
    let all = add_nodes(context, &graph, nodes, &mut clock)?;
    let listed = graph.nodes()?;
    clock.lap("list nodes, first time", nodes);
    assert_eq!(listed.len(), graph.nodes()?.len());
    clock.lap("list nodes", nodes);
    let edges = graph.edges()?;
    clock.lap("list edges", edges.len());
    edges_along(&graph, &all, &mut clock)?;
    let inserted = edges_against(&graph, &edges, &mut clock)?;
    let half: Vec<&Node> = all.iter().take(nodes / 2).map(|node| &**node).collect();
    clock.start();
    graph.remove_nodes(&half)?;
    clock.lap("remove nodes", half.len());
    assert_eq!(graph.len()?, nodes - half.len() + inserted);
    drop(half);
    drop((listed, edges, all));
    let left = nodes - nodes / 2 + inserted;
    clock.start();
    drop(graph);
    clock.lap("drop the graph", left);
    Ok(Scale { nodes, figures: clock.figures })
}

/// Adds the nodes, in parallel chains.
fn add_nodes(
    context: &Context,
    graph: &Graph,
    nodes: usize,
    clock: &mut Clock,
) -> Result<Vec<KernelNode>, Error> {
    let empty = kernel(context, "empty");
    let mut all: Vec<KernelNode> = Vec::with_capacity(nodes);
    clock.start();
    for place in 0..nodes {
        let before = place.checked_sub(LANES).and_then(|before| all.get(before));
        let frontier = before.map_or_else(|| graph.root(), |node| node.then());
        // SAFETY: the kernel has no parameters and does nothing.
        let node = unsafe { frontier.launch_untyped(&empty, per(1, 1), params![]) }?;
        all.push(node);
    }
    clock.lap("add a kernel node", nodes);
    Ok(all)
}

/// Adds and removes edges along the order of creation, all at once and one by one.
fn edges_along(graph: &Graph, all: &[KernelNode], clock: &mut Clock) -> Result<(), Error> {
    let pair = |pair: &[KernelNode]| -> Option<(Node, Node)> {
        Some(((**pair.first()?).clone(), (**pair.get(1)?).clone()))
    };
    let pairs: Vec<(Node, Node)> = all.windows(2).filter_map(pair).collect();
    let along: Vec<(&Node, &Node, EdgeKind)> =
        pairs.iter().map(|(from, to)| (from, to, EdgeKind::Full)).collect();
    let ends: Vec<(&Node, &Node)> = pairs.iter().map(|(from, to)| (from, to)).collect();
    clock.start();
    graph.add_edges(&along)?;
    clock.lap("add edges at once", along.len());
    graph.remove_edges(&ends)?;
    clock.lap("remove edges at once", along.len());
    for (from, to) in &ends {
        graph.add_edge(from, to)?;
    }
    clock.lap("add an edge", along.len());
    for (from, to) in &ends {
        graph.remove_edges(&[(from, to)])?;
    }
    clock.lap("remove an edge", along.len());
    Ok(())
}

/// Turns the chains round, and puts nodes into a tenth of the edges. Returns the number of these.
fn edges_against(graph: &Graph, edges: &[Edge], clock: &mut Clock) -> Result<usize, Error> {
    let chains: Vec<(&Node, &Node)> = edges.iter().map(|edge| (&edge.from, &edge.to)).collect();
    graph.remove_edges(&chains)?;
    let against: Vec<(&Node, &Node, EdgeKind)> =
        chains.iter().map(|(from, to)| (*to, *from, EdgeKind::Full)).collect();
    clock.start();
    graph.add_edges(&against)?;
    clock.lap("add edges against the order", against.len());
    let inserted = against.len() / 10;
    for (from, to, _) in against.iter().take(inserted) {
        graph.between(from, to)?.empty()?;
    }
    clock.lap("put a node into an edge", inserted);
    Ok(inserted)
}

struct Clock {
    figures: Vec<(&'static str, f64)>,
    last: Instant,
}

impl Clock {
    fn start(&mut self) {
        self.last = Instant::now();
    }

    /// Notes the time since the last start or lap.
    fn lap(&mut self, what: &'static str, count: usize) {
        let took = self.last.elapsed();
        self.figures.push((what, took.as_secs_f64() * 1e9 / count.max(1) as f64));
        self.start();
    }
}

impl Scale {
    /// The figures, in nanoseconds for each node or edge.
    pub fn figures(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.figures.iter().copied()
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} nodes, ns each:", self.nodes)?;
        for (what, nanoseconds) in &self.figures {
            writeln!(formatter, "  {what:<28} {nanoseconds:>9.0}")?;
        }
        Ok(())
    }
}
