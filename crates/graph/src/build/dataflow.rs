//! Dataflows: nodes are added in the order of a program, and wait for what their accesses need.

use core::fmt;
use core::ops::Deref;
use std::collections::HashMap;

use cuda_sys::{CUgraphNode, CUgraphNodeParams};
use smallvec::SmallVec;

use crate::build::frontier::Frontier;
use crate::build::insertion::NewNode;
use crate::check::reachability::{Budget, Reachability, order};
use crate::edge::query::Way;
use crate::edge_kind::EdgeKind;
use crate::error::{EdgeError, Error, InteropError, Result};
use crate::footprint::Footprint;
use crate::graph::Graph;
use crate::node_kind::NodeKind;
use crate::state::flows::Flow;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::toposort::Successors;

/// A graph to which nodes are added as to a program: one after the other, and each waits for just
/// those before it that it has to wait for. Made by [`Graph::dataflow`].
///
/// It derefs to a [`Frontier`], and has its methods.
///
/// ```no_run
/// # cuda_launch::kernel! {
/// #     unsafe in cuda_handles::Image::Ptx("");
/// #     fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
/// #     where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
/// # }
/// # use cuda_graph::{Graph, Result};
/// # use cuda_handles::Buffer;
/// # use cuda_launch::per;
/// # fn main() {}
/// # fn example(graph: &Graph, saxpy: &saxpy, [x, y, z]: [&Buffer<f32>; 3]) -> Result<()> {
/// let flow = graph.dataflow()?;
/// flow.fill(x, 1.0)?;
/// // These two have no byte in common.
/// flow.fill(y, 2.0)?;
/// // Waits for both.
/// flow.launch(saxpy, per(1000, 256), (1000, 2.0, x, y))?;
/// // Reads of the same memory do not wait for each other, so it waits for the fill of `x` alone.
/// flow.copy(x, z)?;
/// # Ok(())
/// # }
/// ```
///
/// # Which nodes wait
///
/// A node waits for each node before it with which its declared accesses conflict: both touch a
/// byte, and one of them writes it. Setting a condition counts as writing it. Edges that follow
/// from others are left out, as far as a look at few of them tells.
///
/// Which accesses are known is said at [`Order::ByData`](crate::Order::ByData). Every other node is
/// opaque: it waits for all nodes before it, and all later ones wait for it. So are here
/// - [empty nodes](Frontier::empty): one is a barrier;
/// - child graphs, loops and branches, as a whole;
/// - nodes that take [graph parameters](crate::GraphParam), whose memory is another one later.
///
/// A [capture](Frontier::capture) has an order of its own: capture into a graph, and add it as a
/// child graph.
///
/// # Other nodes of the graph
///
/// Nodes that were added before, or meanwhile in another way, count as added before the next node:
/// it waits for those of them with which it conflicts, and for the opaque ones. If existing nodes
/// or edges are changed or removed, or if other code knows the graph, the next node reads the whole
/// graph again.
///
/// Later changes of a node's parameters in the graph or in an executable are not ordered anew.
#[must_use = "a dataflow does nothing by itself; add nodes to it"]
pub struct Dataflow<'g> {
    frontier: Frontier<'g>,
}

impl Graph {
    /// A [dataflow](Dataflow) of the graph: nodes that are added to it wait for what their declared
    /// accesses need, and for nothing else. So a sequence of calls becomes a parallel graph.
    ///
    /// The first node reads the graph, if there are nodes in it: calls `cuGraphGetNodes` and
    /// `cuGraphGetEdges` (CUDA 10.0), and `cuGraphKernelNodeGetParams` (CUDA 12.0) for each kernel.
    ///
    /// # Errors
    /// The graph cannot be used.
    ///
    /// Adding a node fails as at every frontier, or with the driver's error if the graph cannot be
    /// read. The graph is then as it was.
    #[doc(alias = "task graph")]
    #[doc(alias = "dependency inference")]
    pub fn dataflow(&self) -> Result<Dataflow<'_>> {
        self.enter_unread()?.flows.open(self.subgraph());
        Ok(Dataflow { frontier: Frontier::by_data(self) })
    }
}

impl<'g> Deref for Dataflow<'g> {
    type Target = Frontier<'g>;

    fn deref(&self) -> &Frontier<'g> {
        &self.frontier
    }
}

impl Drop for Dataflow<'_> {
    fn drop(&mut self) {
        let graph = self.frontier.graph();
        // A graph that cannot be used needs no knowledge either.
        if let Ok(mut guard) = graph.look() {
            guard.flows.close(graph.subgraph());
        }
    }
}

impl fmt::Debug for Dataflow<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Dataflow").field("graph", self.frontier.graph()).finish()
    }
}

impl Frontier<'_> {
    /// Refuses what a dataflow cannot add.
    pub(crate) fn ensure_not_by_data(&self, what: &'static str) -> Result<()> {
        if self.is_by_data() { Err(EdgeError::Dataflow { what }.into()) } else { Ok(()) }
    }

    /// Adds a node behind those that its accesses need, and behind those of the frontier.
    #[cold]
    #[inline(never)]
    pub(crate) fn insert_by_data<N: NewNode>(
        &self,
        guard: &mut GraphGuard<'_>,
        new: N,
        params: &mut CUgraphNodeParams,
    ) -> Result<NodeId> {
        let subgraph = self.graph().subgraph();
        let prepared = new.footprint(guard, params).and_then(|footprint| {
            let flow = guard.flow_of(subgraph)?;
            Ok((footprint, flow))
        });
        let (footprint, mut flow) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Err(guard.abandon(new.into_owners(), error)),
        };
        let mut before = flow.before(&footprint);
        before.extend(self.comes_after());
        let mut seen = std::collections::HashSet::new();
        before.retain(|id| seen.insert(*id));
        let after = before.iter().map(|id| (*id, EdgeKind::Full)).collect();
        let inserted = Frontier::at(self.graph(), after, None).insert(guard, new, params);
        if let Ok(id) = &inserted {
            flow.add(*id, &footprint, &before);
        }
        guard.flows.put(subgraph, flow);
        inserted
    }
}

/// Steps of the search for paths between nodes that exist already.
const STEPS: u64 = 10_000_000;

impl GraphGuard<'_> {
    /// The flow of a graph, which knows all of its nodes. The caller puts it back.
    fn flow_of(&mut self, subgraph: SubgraphId) -> Result<Flow> {
        let (flow, added) = self.flows.take(subgraph);
        let now = self.changes.other_than_adds();
        match flow {
            Some(mut flow) if flow.holds_at == now && !self.is_shared() => {
                for id in added {
                    self.take_in(&mut flow, id)?;
                }
                Ok(flow)
            }
            _ => self.read_flow(subgraph),
        }
    }

    /// Adds a node that was added in another way.
    fn take_in(&mut self, flow: &mut Flow, id: NodeId) -> Result<()> {
        if flow.number(id).is_some() {
            return Ok(());
        }
        let footprint = self.barrier_or_footprint(id)?;
        let mut before = Vec::new();
        for (raw, kind) in self.neighbours(self.raw_of(id)?, Way::In)? {
            if kind == EdgeKind::Full
                && let Some(index) = self.find(raw)
            {
                before.extend(self.id(index));
            }
        }
        let numbers: Vec<u32> = before.iter().filter_map(|before| flow.number(*before)).collect();
        flow.add_existing(id, &footprint, &before, |earlier, _| numbers.contains(&earlier));
        Ok(())
    }

    /// Reads a graph as a flow.
    fn read_flow(&mut self, subgraph: SubgraphId) -> Result<Flow> {
        let mut flow = Flow::new(self.changes.other_than_adds());
        let graph = self.graph_at(subgraph)?;
        let raws = self.raw_nodes_of(graph)?;
        if raws.is_empty() {
            return Ok(flow);
        }
        let places: HashMap<CUgraphNode, u32> = raws.iter().copied().zip(0..).collect();
        let edges = self.raw_edges_of(graph)?.into_iter().filter(|edge| edge.2 == EdgeKind::Full);
        let edges: Vec<(u32, u32)> =
            edges.filter_map(|(from, to, _)| Some((*places.get(&from)?, *places.get(&to)?))).collect();
        let predecessors = Successors::new(raws.len(), edges.iter().map(|(from, to)| (*to, *from)));
        let successors = Successors::new(raws.len(), edges.iter().copied());
        let unknown = |raw: CUgraphNode| Error::Interop(InteropError::UnknownNode { raw: raw.addr() });
        let mut ids = Vec::with_capacity(raws.len());
        for &raw in &raws {
            let index = self.index_in(subgraph, raw)?;
            ids.push(self.id(index).ok_or_else(|| unknown(raw))?);
        }
        // Only other code makes cycles, and no driver takes them.
        let Some(order) = order(&successors) else { return Ok(flow) };
        let mut reachability = Reachability::new(successors, &order);
        let mut budget = Budget(STEPS);
        for &node in &order {
            let id = ids[node as usize];
            let footprint = self.barrier_or_footprint(id)?;
            let before: SmallVec<[NodeId; 8]> =
                predecessors.of(node).iter().map(|before| ids[*before as usize]).collect();
            let is_before = |earlier: u32, _| {
                reachability.leads(order[earlier as usize], node, &mut budget).unwrap_or(false)
            };
            flow.add_existing(id, &footprint, &before, is_before);
        }
        Ok(flow)
    }

    /// The footprint of a node of a dataflow, in which empty nodes are barriers, and nodes with
    /// graph parameters are opaque.
    fn barrier_or_footprint(&self, id: NodeId) -> Result<Footprint> {
        let is_empty = self.record(id).is_some_and(|record| record.node_params.kind() == NodeKind::Empty);
        match is_empty || self.bindings.get(id).is_some() {
            true => Ok(Footprint::OPAQUE),
            false => self.footprint(id),
        }
    }
}
