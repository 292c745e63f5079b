//! Clones of graphs, and the nodes in them.

pub(crate) mod flattened;
pub(crate) mod node_copy;
pub(crate) mod snapshot;

use cuda_handles::GraphHandle;
use cuda_handles::internal::alone_in_order;
use cuda_sys::{CUresult, Call};

use crate::error::wrong_context::Spans;
use crate::error::{EmbedError, Error, NodeError, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::GraphState;
use crate::state::ids::NodeId;
use crate::state::ids::SubgraphId;

impl Graph {
    /// Makes an independent copy of the graph: with the same nodes, edges and names, and its own
    /// share in the owners of the nodes. (`clone()` only makes another handle of the same graph.)
    ///
    /// The clone of an embedded graph is a root graph, which can be instantiated, moved and
    /// embedded.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Node, Result};
    /// # fn example(graph: &Graph, clear: &Node) -> Result<()> {
    /// let copy = graph.clone_graph()?;
    /// copy.find_clone_of(clear)?.remove()?; // `graph` keeps its node
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphClone` (CUDA 10.0). Reads the nodes of the clone by `cuGraphGetNodes` for each
    /// graph and `cuGraphChildGraphNodeGetGraph` for each embedded graph (CUDA 10.0).
    ///
    /// # Errors
    /// - [`MemoryError::HasMemory`](crate::MemoryError::HasMemory), if the graph has memory nodes,
    ///   or nodes that use their memory.
    /// - [`ConditionError::HasConditions`](crate::ConditionError::HasConditions), if the graph has
    ///   conditions.
    /// - [`EmbedError::HoldsChildren`], if the graph is embedded in a node and has child graph
    ///   nodes, and the driver does not clone such a graph.
    /// - [`Error::Handles`], if the driver reports another error.
    #[doc(alias = "cuGraphClone")]
    #[doc(alias = "cudaGraphClone")]
    pub fn clone_graph(&self) -> Result<Self> {
        let mut guard = self.enter()?;
        let snapshot = guard.copy(self.subgraph())?;
        snapshot.ensure_without_memory()?;
        let mut raw = core::ptr::null_mut();
        let result = {
            let _alone = alone_in_order(self.context())?;
            // SAFETY: the graph is live and locked, and the out pointer is valid.
            unsafe { guard.driver().cuGraphClone(&raw mut raw, guard.raw()) }
        };
        // Older drivers refuse to clone such a graph.
        let is_refused = result == CUresult::CUDA_ERROR_INVALID_VALUE;
        if is_refused && !self.subgraph().is_root() && snapshot.holds_children() {
            return Err(Error::Embed(EmbedError::HoldsChildren));
        }
        guard.answer(Call::cuGraphClone, result)?;
        // SAFETY: the driver has just made the clone for this context, and no other code has it.
        let handle = unsafe { GraphHandle::from_raw_owned(self.context(), raw) };
        let clone_map = guard.pair(&snapshot, raw)?;
        let mut state = GraphState::default();
        let subgraphs = state.paste(snapshot, &clone_map, SubgraphId::ROOT, false);
        drop(guard);
        let clone = Self::of(handle, state);
        clone.hierarchy().widen(self.others());
        clone.look()?.register(&subgraphs);
        Ok(clone)
    }

    /// The node of this graph that corresponds to `node` of another graph.
    ///
    /// This graph is a clone of the other one, was embedded as a clone of it, or is the other graph
    /// after it was moved into a node. Clones of clones count, up to eight generations. Nodes of
    /// embedded graphs are found in the embedded graphs of the clone.
    ///
    /// Makes no driver call.
    ///
    /// # Errors
    /// - [`NodeError::Removed`], if `node` or its counterpart was removed.
    /// - [`NodeError::NotCloned`], if this graph is not a clone of the graph of `node`, or `node`
    ///   was added later.
    #[doc(alias = "cuGraphNodeFindInClone")]
    #[doc(alias = "cudaGraphNodeFindInClone")]
    pub fn find_clone_of(&self, node: &Node) -> Result<Node> {
        // One lock at a time. The nodes of a moved graph belong to this hierarchy.
        match node.graph().look() {
            Ok(guard) => {
                guard.record(node.id()).ok_or_else(|| node.removed())?;
            }
            Err(Error::Node(NodeError::GraphMoved)) => {}
            Err(error) => return Err(error),
        }
        let source = node.graph().number();
        let found = {
            let guard = self.look()?;
            let facts = guard.facts(self.subgraph()).ok_or(Error::Node(NodeError::GraphRemoved))?;
            let lineage = facts.lineage.within(self.subgraph(), &guard.moved);
            let id = lineage.find(source, node.graph().subgraph(), node.id());
            id.map(|id| (id, guard.record(id).map(|record| (record.within, record.node_params.kind()))))
        };
        match found {
            Some((id, Some((within, kind)))) if within == self.subgraph() => {
                Ok(Node::new(self.clone(), id, kind))
            }
            // The node was removed before the graph was moved, and another node has its id.
            Some((NodeId::NONE, _) | (_, Some(_))) => Err(node.removed()),
            Some((id, None)) => Err(Node::new(self.clone(), id, node.kind()).removed()),
            None => Err(Error::Node(NodeError::NotCloned { node: node.name().into() })),
        }
    }
}
