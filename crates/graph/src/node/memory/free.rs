//! Free nodes: free memory of the graph.

use std::sync::Arc;

use cuda_handles::{Allocation, Error as HandleError, GraphBuffer};
use cuda_sys::{CUdeviceptr, CUgraphNodeParams, CUgraphNodeType, CUresult, Call};

use super::alloc::AllocNode;
use crate::build::frontier::Frontier;
use crate::build::insertion::PlainNode;
use crate::error::{Error, MemoryError, Result};
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
    ///
    /// All nodes that use the memory run before it. Add one with [`Graph::free`], which finds these
    /// nodes, or with [`Frontier::free`].
    #[doc(alias = "CUDA_MEM_FREE_NODE_PARAMS")]
    #[doc(alias = "cudaMemFreeNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeMemFree")]
    FreeNode, Free
}

impl FreeNode {
    /// The address of the memory that the node frees.
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed.
    #[doc(alias = "cuGraphMemFreeNodeGetParams")]
    #[doc(alias = "cudaGraphMemFreeNodeGetParams")]
    pub fn address(&self) -> Result<CUdeviceptr> {
        match self.node_params()? {
            NodeParams::Free { address, .. } => Ok(address),
            // A handle is made only for a record of its kind, and a record keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// The node that allocates the memory. `None` if the memory belongs to another graph; only
    /// other code adds such nodes.
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed.
    pub fn allocation(&self) -> Result<Option<AllocNode>> {
        let address = self.address()?;
        let guard = self.graph().look()?;
        let alloc = guard.memory.freed_by(address, self.id()).map(|life| life.alloc);
        let subgraph = alloc.and_then(|id| guard.record(id)).map(|record| record.within);
        drop(guard);
        let alloc = alloc
            .zip(subgraph)
            .map(|(id, subgraph)| Node::new(self.graph().at(subgraph), id, NodeKind::Alloc));
        Ok(alloc.map(AllocNode::wrap))
    }
}

impl AllocNode {
    /// The node that frees the memory. `None` if launches leave the memory to the caller
    /// ([`GraphExec::launch_with_outputs`](crate::GraphExec::launch_with_outputs)).
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed.
    pub fn freed_by(&self) -> Result<Option<FreeNode>> {
        let NodeParams::Alloc { memory, .. } = self.node_params()? else { return Err(self.removed()) };
        let guard = self.graph().look()?;
        let free = guard.memory.life_of(&memory).and_then(|life| life.free);
        let subgraph = free.and_then(|id| guard.record(id)).map(|record| record.within);
        drop(guard);
        let free =
            free.zip(subgraph).map(|(id, subgraph)| Node::new(self.graph().at(subgraph), id, NodeKind::Free));
        Ok(free.map(FreeNode::wrap))
    }
}

impl Frontier<'_> {
    /// Adds a node that frees memory of the graph.
    ///
    /// It has to wait for all nodes that use the memory; otherwise
    /// [`Graph::instantiate`](crate::Graph::instantiate) refuses the graph. [`Graph::free`] finds
    /// these nodes.
    ///
    /// Add it late: once it exists, the driver refuses to add copies and fills with the memory, to
    /// this graph and to those embedded in it, wherever they would run. Kernel nodes can still be
    /// added.
    ///
    /// Add it before the first executable is made, unless the allocation node was added after that.
    /// Otherwise launches leave the memory, which is then freed by dropping it or by the [next
    /// launch](crate::InstantiateOptions::auto_free). Memory of a graph that was
    /// [moved](Self::child_moved) into a node can be freed here at any time.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`MemoryError::ForeignMemory`], if the memory belongs to another graph.
    /// - [`MemoryError::FreedTwice`], if a free node for the memory exists.
    /// - [`MemoryError::FreedTooLate`], if an executable was made of the graph with the allocation
    ///   node.
    /// - [`MemoryError::FreeRefused`], if the driver refuses the node, as it does if other code
    ///   made such an executable.
    /// - [`MemoryError::MemoryEmbedded`], if the graph is embedded in a node, and
    ///   [`ConditionError::NotInBody`](crate::ConditionError::NotInBody), if it lies in a body.
    /// - [`NodeError::Removed`](crate::NodeError::Removed), if a node of the frontier was removed.
    /// - [`Error::Handles`], if the driver reports another error.
    #[doc(alias = "cuGraphAddMemFreeNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddMemFreeNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaFreeAsync")]
    #[doc(alias = "cudaFree")]
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
    /// Adds a node that frees memory of the graph after all nodes that use it now.
    ///
    /// It waits for the allocation node and for every node that uses the memory, also in embedded
    /// graphs. Finding them visits all nodes of the graph.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Result};
    /// # fn example(graph: &Graph) -> Result<()> {
    /// let (scratch, numbers) = graph.root().alloc::<f32>(1024)?;
    /// let (left, right) = (numbers.slice(..512)?, numbers.slice(512..)?);
    /// scratch.then().fill(left, 1.0)?;
    /// scratch.then().fill(right, 2.0)?;
    /// graph.free(&numbers)?; // waits for both fills
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// The errors of [`Frontier::free`].
    #[doc(alias = "cuGraphAddMemFreeNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddMemFreeNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaFreeAsync")]
    #[doc(alias = "cudaFree")]
    pub fn free<T>(&self, memory: &GraphBuffer<T>) -> Result<FreeNode> {
        let mut after = Vec::new();
        {
            let guard = self.enter()?;
            guard.ensure_takes_memory(self.subgraph(), NodeKind::Free)?;
            let Life { alloc, .. } = guard.ensure_unfreed(memory.allocation())?;
            after.extend(guard.users_of(alloc).into_iter().filter_map(|id| guard.outermost(id)));
            after.sort_unstable_by_key(|id| id.number);
            after.dedup();
            // Otherwise the users wait for the allocation.
            if after.is_empty() {
                after.extend(guard.outermost(alloc));
            }
        }
        Frontier::after_ids(self, after).free(memory)
    }
}

impl GraphGuard<'_> {
    /// The life of memory of this hierarchy, if a free node for it can be added now.
    fn ensure_unfreed(&self, memory: &Arc<Allocation>) -> Result<Life> {
        self.ensure_of_here(memory, || "free".into())?;
        let life = self
            .memory
            .life_of(memory)
            .ok_or_else(|| Error::Memory(MemoryError::ForeignMemory { node: "free".into() }))?;
        let memory_of = || self.name(life.alloc);
        match life.free {
            Some(free) => {
                Err(Error::Memory(MemoryError::FreedTwice { memory: memory_of(), free: self.name(free) }))
            }
            // Free nodes are in the root graph. If the allocation node is in another graph, the
            // driver accepts them at any time.
            None if self.is_of_root(life.alloc) && self.memory.was_instantiated(memory) => {
                Err(Error::Memory(MemoryError::FreedTooLate { memory: memory_of() }))
            }
            None => Ok(life),
        }
    }

    fn is_of_root(&self, node: NodeId) -> bool {
        self.record(node).is_some_and(|record| record.within.is_root())
    }

    /// Explains an `INVALID_VALUE` for a free node that passed all checks of this library.
    #[cold]
    fn explain_free(&self, alloc: NodeId, error: Error) -> Error {
        let (call, code) = (Call::cuGraphAddNode, CUresult::CUDA_ERROR_INVALID_VALUE);
        match error {
            Error::Handles(cause) if cause == HandleError::Driver { call, code } => {
                Error::Memory(MemoryError::FreeRefused { memory: self.name(alloc), cause: Box::new(cause) })
            }
            error => error,
        }
    }
}

/// The driver's parameters of a free node.
fn params(address: CUdeviceptr) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE);
    params.__bindgen_anon_1.free.dptr = address;
    params
}
