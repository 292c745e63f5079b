//! Nodes that free memory.

use std::sync::Arc;

use cuda_handles::{Allocation, Error as HandleError, GraphBuffer};
use cuda_sys::{CUdeviceptr, CUgraphNodeParams, CUgraphNodeType, CUresult, Call};

use super::alloc::AllocNode;
use crate::build::frontier::Frontier;
use crate::build::insertion::PlainNode;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::node::{Node, typed};
use crate::node_kind::NodeKind;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::memory_nodes::Life;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;

typed! {
    /// A node that frees the memory of an [`AllocNode`].
    FreeNode, Free
}

impl FreeNode {
    /// Where the memory is that it frees.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphMemFreeNodeGetParams")]
    pub fn address(&self) -> Result<CUdeviceptr> {
        match self.node_params()? {
            NodeParams::Free { address, .. } => Ok(address),
            // The handle is made for rows of its kind only, and a row keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// The node whose memory it frees; `None` for memory of another graph, which other code can
    /// free so.
    ///
    /// # Errors
    /// The node was removed.
    pub fn allocation(&self) -> Result<Option<AllocNode>> {
        let address = self.address()?;
        let guard = self.graph().look()?;
        let alloc = guard.memory.freed_by(address, self.id()).map(|life| life.alloc);
        let place = alloc.and_then(|id| guard.record(id)).map(|record| record.within);
        drop(guard);
        let alloc =
            alloc.zip(place).map(|(id, place)| Node::new(self.graph().at(place), id, NodeKind::Alloc));
        Ok(alloc.map(AllocNode::wrap))
    }
}

impl AllocNode {
    /// The node that frees the memory; `None` if launches leave it
    /// ([`GraphExec::launch_with_outputs`](crate::GraphExec::launch_with_outputs)).
    ///
    /// # Errors
    /// The node was removed.
    pub fn freed_by(&self) -> Result<Option<FreeNode>> {
        let NodeParams::Alloc { memory, .. } = self.node_params()? else { return Err(self.removed()) };
        let guard = self.graph().look()?;
        let free = guard.memory.life_of(&memory).and_then(|life| life.free);
        let place = free.and_then(|id| guard.record(id)).map(|record| record.within);
        drop(guard);
        let free = free.zip(place).map(|(id, place)| Node::new(self.graph().at(place), id, NodeKind::Free));
        Ok(free.map(FreeNode::wrap))
    }
}

impl Frontier<'_> {
    /// Adds a node that frees memory of the graph. It has to wait for all nodes that use the
    /// memory, or the graph is not instantiated; [`Graph::free`] finds them by itself.
    ///
    /// It comes last: once it is there, the driver takes no more copies and fills with the memory,
    /// whatever they wait for, in this graph and those embedded in it; kernels it does. And it
    /// comes before the first executable of the graph, unless the allocation node is added after
    /// that: what launches leave can only be dropped else, or freed by the [next
    /// launch](crate::InstantiateOptions::auto_free). Memory that comes from a graph which was
    /// [moved](Self::child_moved) into a node is freed here at any time.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// Memory of another graph; memory that the graph frees already ([`Error::FreedTwice`]); an
    /// allocation node of this graph of which an executable was made ([`Error::FreedTooLate`]), or
    /// of which other code has made one ([`Error::FreeRefused`]); a graph that is embedded in a
    /// node, which takes no memory nodes ([`Error::MemoryEmbedded`]); a node of the frontier was
    /// removed; or what the driver answers.
    #[doc(alias = "cuGraphAddMemFreeNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn free<T>(&self, memory: &GraphBuffer<T>) -> Result<FreeNode> {
        let mut guard = self.graph().enter()?;
        guard.ensure_takes_memory(self.graph().subgraph(), NodeKind::Free)?;
        let Life { alloc, .. } = guard.ensure_unfreed(memory.allocation())?;
        let address = memory.address();
        let node_params = NodeParams::Free { address, memory: Some(Arc::clone(memory.allocation())) };
        let new = PlainNode { subgraph: self.graph().subgraph(), node_params, owners: Owners::new() };
        let id = self.insert(&mut guard, new, &mut params(address));
        let id = id.map_err(|error| guard.explain_free(alloc, error))?;
        drop(guard);
        Ok(FreeNode::wrap(Node::new(self.graph().clone(), id, NodeKind::Free)))
    }
}

impl Graph {
    /// Adds a node that frees memory of the graph once all is done with it: it waits for the
    /// allocation and for every node that uses the memory now, be it in a graph embedded in a node.
    /// It looks through all nodes for that.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`Frontier::free`].
    #[doc(alias = "cuGraphAddMemFreeNode")]
    pub fn free<T>(&self, memory: &GraphBuffer<T>) -> Result<FreeNode> {
        let mut after = Vec::new();
        {
            let guard = self.enter()?;
            guard.ensure_takes_memory(self.subgraph(), NodeKind::Free)?;
            let Life { alloc, .. } = guard.ensure_unfreed(memory.allocation())?;
            after.extend(guard.users_of(alloc).into_iter().filter_map(|id| guard.outermost(id)));
            after.sort_unstable_by_key(|id| id.number);
            after.dedup();
            // Its users wait for the allocation already.
            if after.is_empty() {
                after.extend(guard.outermost(alloc));
            }
        }
        Frontier::after_ids(self, after).free(memory)
    }
}

impl GraphGuard<'_> {
    /// What becomes of memory of the hierarchy, for which a free node can be added now.
    fn ensure_unfreed(&self, memory: &Arc<Allocation>) -> Result<Life> {
        self.ensure_of_here(memory, || "free".into())?;
        let life = self.memory.life_of(memory).ok_or_else(|| Error::ForeignMemory { node: "free".into() })?;
        let memory_of = || self.name(life.alloc);
        match life.free {
            Some(free) => Err(Error::FreedTwice { memory: memory_of(), free: self.name(free) }),
            // Free nodes are in the root graph, and one in another graph than the allocation node
            // the driver takes at any time.
            None if self.is_of_root(life.alloc) && self.memory.was_instantiated(memory) => {
                Err(Error::FreedTooLate { memory: memory_of() })
            }
            None => Ok(life),
        }
    }

    fn is_of_root(&self, node: NodeId) -> bool {
        self.record(node).is_some_and(|record| record.within.is_root())
    }

    /// The driver's refusal of a free node in words: what there is to know here speaks for it.
    #[cold]
    fn explain_free(&self, alloc: NodeId, error: Error) -> Error {
        let (call, code) = (Call::cuGraphAddNode, CUresult::CUDA_ERROR_INVALID_VALUE);
        match error == Error::Handles(HandleError::Driver { call, code }) {
            true => Error::FreeRefused { memory: self.name(alloc), cause: Box::new(error) },
            false => error,
        }
    }
}

/// The driver's form of a free node.
fn params(address: CUdeviceptr) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE);
    params.__bindgen_anon_1.free.dptr = address;
    params
}
