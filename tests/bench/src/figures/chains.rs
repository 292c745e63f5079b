//! Changes of graphs of many nodes: chains of kernels, for each node or edge.

use core::hint::black_box;
use core::ptr;
use std::time::Duration;

use cuda_graph::{ContextExt, Graph, KernelNode};
use cuda_handles::Kernel;
use cuda_launch::{params, per};
use cuda_sys::CUgraphNode;

use super::RowOf;
use crate::Outcome;
use crate::bench::{Bench, load};
use crate::measure::{Pair, timed};
use crate::raw::{RawGraph, kernel_node, ok};

const SHORT: u32 = 1_000;
const LONG: u32 = 100_000;

/// A batch is one chain of so many nodes.
pub(super) const FIGURES: &[(&str, u32, RowOf)] = &[
    ("chain of 1000, add a node", SHORT, add),
    ("chain of 1000, add an edge", SHORT, add_edge),
    ("chain of 1000, remove an edge", SHORT, remove_edge),
    ("chain of 1000, remove a node", SHORT, remove),
    ("chain of 1000, drop the graph", SHORT, destroy),
    ("chain of 100000, add a node", LONG, add),
    ("chain of 100000, add an edge", LONG, add_edge),
    ("chain of 100000, remove an edge", LONG, remove_edge),
    ("chain of 100000, remove a node", LONG, remove),
    ("chain of 100000, drop the graph", LONG, destroy),
];

/// The driver that does nothing has no nodes to list.
pub(super) const LISTS: &[(&str, u32, RowOf)] =
    &[("chain of 1000, list all nodes", SHORT, list), ("chain of 100000, list all nodes", LONG, list)];

/// A chain made by the library. Handles of nodes keep the graph, so they are dropped first.
struct Chain {
    nodes: Vec<KernelNode>,
    graph: Graph,
}

impl Chain {
    fn empty(bench: &Bench, len: u32) -> Outcome<Self> {
        Ok(Self { nodes: Vec::with_capacity(len as usize), graph: bench.context.graph()? })
    }

    fn new(bench: &Bench, kernel: &Kernel, len: u32) -> Outcome<Self> {
        let mut chain = Self::empty(bench, len)?;
        (0..len).try_for_each(|_| chain.add(kernel))?;
        Ok(chain)
    }

    #[inline]
    fn add(&mut self, kernel: &Kernel) -> Outcome<()> {
        let frontier = self.nodes.last().map_or_else(|| self.graph.root(), |node| node.then());
        // SAFETY: the kernel has no parameters and does nothing.
        self.nodes.push(unsafe { frontier.launch_untyped(black_box(kernel), per(1, 1), params![]) }?);
        Ok(())
    }
}

/// A chain made by raw calls.
struct RawChain<'b> {
    bench: &'b Bench,
    nodes: Vec<CUgraphNode>,
    graph: RawGraph,
}

impl<'b> RawChain<'b> {
    fn empty(bench: &'b Bench, len: u32) -> Outcome<Self> {
        Ok(Self { bench, nodes: Vec::with_capacity(len as usize), graph: RawGraph::new(bench)? })
    }

    fn new(bench: &'b Bench, kernel: &Kernel, len: u32) -> Outcome<Self> {
        let mut chain = Self::empty(bench, len)?;
        (0..len).try_for_each(|_| chain.add(kernel))?;
        Ok(chain)
    }

    #[inline]
    fn add(&mut self, kernel: &Kernel) -> Outcome<()> {
        let mut params = kernel_node(self.bench, black_box(kernel), (1, 1), ptr::null_mut());
        let before = self.nodes.last().map_or(&[][..], core::slice::from_ref);
        let node = self.graph.add(before, &mut params)?;
        self.nodes.push(node);
        Ok(())
    }

    fn list(&self) -> Outcome<Vec<CUgraphNode>> {
        let (driver, graph) = (self.bench.driver(), self.graph.as_raw());
        let mut count = 0;
        // SAFETY: the graph lives; without an array, the call only counts.
        ok(unsafe { driver.cuGraphGetNodes(graph, ptr::null_mut(), &raw mut count) })?;
        let mut nodes = vec![ptr::null_mut(); count];
        // SAFETY: the graph lives, and the array has room for that many.
        ok(unsafe { driver.cuGraphGetNodes(graph, nodes.as_mut_ptr(), &raw mut count) })?;
        Ok(nodes)
    }
}

/// Both sides of a figure: each makes a chain, does something for each of its parts and returns the
/// time of that alone.
fn pair<'b>(
    bench: &'b Bench,
    ours: fn(&Bench, &Kernel, u32) -> Outcome<Duration>,
    raw: fn(&Bench, &Kernel, u32) -> Outcome<Duration>,
) -> Outcome<Pair<'b>> {
    let kernel = load(&bench.context, "empty")?;
    let same = kernel.clone();
    Ok(Pair {
        ours: Box::new(move |count| ours(bench, &kernel, count)),
        raw: Box::new(move |count| raw(bench, &same, count)),
    })
}

fn add(bench: &Bench) -> Outcome<Pair<'_>> {
    pair(
        bench,
        |bench, kernel, count| {
            let mut chain = Chain::empty(bench, count)?;
            timed(count, || chain.add(kernel))
        },
        |bench, kernel, count| {
            let mut chain = RawChain::empty(bench, count)?;
            timed(count, || chain.add(kernel))
        },
    )
}

/// The lists are dropped outside of the time.
fn list(bench: &Bench) -> Outcome<Pair<'_>> {
    pair(
        bench,
        |bench, kernel, count| {
            let chain = Chain::new(bench, kernel, count)?;
            let mut nodes = Vec::new();
            timed(1, || {
                nodes = chain.graph.nodes()?;
                Ok(())
            })
        },
        |bench, kernel, count| {
            let chain = RawChain::new(bench, kernel, count)?;
            let mut nodes = Vec::new();
            timed(1, || {
                nodes = chain.list()?;
                Ok(())
            })
        },
    )
}

/// From each node to the one after the next.
fn add_edge(bench: &Bench) -> Outcome<Pair<'_>> {
    pair(
        bench,
        |bench, kernel, count| {
            let chain = Chain::new(bench, kernel, count + 2)?;
            let mut pairs = chain.nodes.iter().zip(chain.nodes.iter().skip(2));
            timed(count, || pairs.next().map_or(Ok(()), |(from, to)| Ok(chain.graph.add_edge(from, to)?)))
        },
        |bench, kernel, count| {
            let chain = RawChain::new(bench, kernel, count + 2)?;
            let mut pairs = chain.nodes.iter().zip(chain.nodes.iter().skip(2));
            timed(count, || {
                let Some((from, to)) = pairs.next() else { return Ok(()) };
                // SAFETY: graph and nodes live.
                ok(unsafe { bench.driver().cuGraphAddDependencies(chain.graph.as_raw(), from, to, 1) })
            })
        },
    )
}

/// From each node to the next one.
fn remove_edge(bench: &Bench) -> Outcome<Pair<'_>> {
    pair(
        bench,
        |bench, kernel, count| {
            let chain = Chain::new(bench, kernel, count + 1)?;
            let mut pairs = chain.nodes.iter().zip(chain.nodes.iter().skip(1));
            timed(count, || {
                pairs.next().map_or(Ok(()), |(from, to)| Ok(chain.graph.remove_edges(&[(from, to)])?))
            })
        },
        |bench, kernel, count| {
            let chain = RawChain::new(bench, kernel, count + 1)?;
            let mut pairs = chain.nodes.iter().zip(chain.nodes.iter().skip(1));
            timed(count, || {
                let Some((from, to)) = pairs.next() else { return Ok(()) };
                // SAFETY: graph and nodes live, and the edge is there.
                ok(unsafe { bench.driver().cuGraphRemoveDependencies(chain.graph.as_raw(), from, to, 1) })
            })
        },
    )
}

/// From the first node to the last one.
fn remove(bench: &Bench) -> Outcome<Pair<'_>> {
    pair(
        bench,
        |bench, kernel, count| {
            let chain = Chain::new(bench, kernel, count)?;
            let mut nodes = chain.nodes.iter();
            timed(count, || nodes.next().map_or(Ok(()), |node| Ok(node.remove()?)))
        },
        |bench, kernel, count| {
            let chain = RawChain::new(bench, kernel, count)?;
            let mut nodes = chain.nodes.iter();
            timed(count, || {
                let Some(node) = nodes.next() else { return Ok(()) };
                // SAFETY: the node lives, and this is its last use.
                ok(unsafe { bench.driver().cuGraphDestroyNode(*node) })
            })
        },
    )
}

/// Without handles of nodes.
fn destroy(bench: &Bench) -> Outcome<Pair<'_>> {
    pair(
        bench,
        |bench, kernel, count| {
            let Chain { nodes, graph } = Chain::new(bench, kernel, count)?;
            drop(nodes);
            let mut graph = Some(graph);
            timed(1, || {
                drop(graph.take());
                Ok(())
            })
        },
        |bench, kernel, count| {
            let mut chain = Some(RawChain::new(bench, kernel, count)?);
            timed(1, || {
                drop(chain.take());
                Ok(())
            })
        },
    )
}
