//! Clones of graphs, and their nodes.

pub(crate) mod snapshot;

use cuda_handles::{GraphHandle, clones};
use cuda_sys::{CUresult, Call};

use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::GraphState;
use crate::state::ids::NodeId;
use crate::state::ids::SubgraphId;

impl Graph {
    /// A graph of its own with the same nodes, edges and names, which keeps the same things alive.
    /// (`clone()` is another handle of the same graph.) Of a graph that is embedded in a node it
    /// makes one that can be instantiated, moved and embedded.
    ///
    /// Stands on `cuGraphClone`, CUDA 10.0, and asks the driver for the clone's nodes:
    /// `cuGraphGetNodes` for each graph and `cuGraphChildGraphNodeGetGraph` for each embedded one.
    ///
    /// # Errors
    /// The graph is embedded in a node and has child graph nodes itself, and the driver takes no
    /// such graph ([`Error::HoldsChildren`]); or what the driver answers.
    #[doc(alias = "cuGraphClone")]
    pub fn clone_graph(&self) -> Result<Self> {
        let mut guard = self.enter()?;
        let copied = guard.copy(self.subgraph())?;
        copied.ensure_without_memory()?;
        let mut raw = core::ptr::null_mut();
        let result = {
            let _alone = clones::alone(self.context())?;
            // SAFETY: the graph is live and locked, and the out pointer is valid.
            unsafe { guard.driver().cuGraphClone(&raw mut raw, guard.raw()) }
        };
        // Some drivers took none of these, others take all: the driver is asked.
        let is_refused = result == CUresult::CUDA_ERROR_INVALID_VALUE;
        if is_refused && !self.subgraph().is_root() && copied.holds_children() {
            return Err(Error::HoldsChildren);
        }
        guard.answer(Call::cuGraphClone, result)?;
        // SAFETY: the driver has just made it, of work of this context, and nobody else knows it.
        let handle = unsafe { GraphHandle::from_raw_owned(self.context(), raw) };
        let clone_map = guard.pair(&copied, raw)?;
        let mut table = GraphState::default();
        let subgraphs = table.paste(copied, &clone_map, SubgraphId::ROOT, false);
        drop(guard);
        let clone = Self::of(handle, table);
        clone.look()?.register(&subgraphs);
        Ok(clone)
    }

    /// The node of this graph that stands for `node` of another one: this is a clone of that one,
    /// embedded as a clone of it, or what it became when it was moved into a node. Through clones
    /// of clones as well, up to eight of them.
    ///
    /// Nodes of embedded graphs are found in the embedded graphs of the clone. No driver call.
    ///
    /// # Errors
    /// `node` was removed, or the one that stands for it ([`Error::Removed`]); or this is no clone
    /// of its graph, or it was added later ([`Error::NotCloned`]).
    #[doc(alias = "cuGraphNodeFindInClone")]
    pub fn find_clone_of(&self, node: &Node) -> Result<Node> {
        // One lock after the other. The nodes of a graph that was moved are all here.
        match node.graph().look() {
            Ok(guard) => {
                guard.record(node.id()).ok_or_else(|| node.removed())?;
            }
            Err(Error::GraphMoved) => {}
            Err(error) => return Err(error),
        }
        let source = node.graph().number();
        let found = {
            let guard = self.look()?;
            let facts = guard.facts(self.subgraph()).ok_or(Error::GraphRemoved)?;
            let lineage = facts.lineage.within(self.subgraph(), &guard.moved);
            let id = lineage.find(source, node.graph().subgraph(), node.id());
            id.map(|id| (id, guard.record(id).map(|record| (record.within, record.node_params.kind()))))
        };
        match found {
            Some((id, Some((within, kind)))) if within == self.subgraph() => {
                Ok(Node::new(self.clone(), id, kind))
            }
            // It was gone before the graph was moved, and what it was known by is another's.
            Some((NodeId::NONE, _) | (_, Some(_))) => Err(node.removed()),
            Some((id, None)) => Err(Node::new(self.clone(), id, node.kind()).removed()),
            None => Err(Error::NotCloned { node: node.name().into() }),
        }
    }
}
