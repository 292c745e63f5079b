//! Rules for graphs with memory nodes: what they refuse.

use std::sync::Arc;

use cuda_handles::{Allocation, Kernel, Owner};

use crate::error::{Error, MemoryError, Result};
use crate::node_kind::NodeKind;
use crate::node_name::NodeName;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::memory_nodes::Life;
use crate::state::params::NodeParams;

impl GraphGuard<'_> {
    /// Refuses graph memory of another hierarchy. `node` names the node that was given it.
    #[inline]
    pub(crate) fn ensure_of_here(&self, memory: &Allocation, node: impl FnOnce() -> NodeName) -> Result<()> {
        match memory.graph() {
            Some(graph) if graph != self.memory_number() => {
                Err(Error::Memory(MemoryError::ForeignMemory { node: node() }))
            }
            None | Some(_) => Ok(()),
        }
    }

    /// The same for the arguments of a kernel.
    #[inline]
    pub(crate) fn ensure_own_arguments(&self, used: &[&Arc<Allocation>], kernel: &Kernel) -> Result<()> {
        used.iter().try_for_each(|memory| self.ensure_of_here(memory, || kernel.name().into()))
    }

    /// The same for everything that a node is to use.
    pub(crate) fn ensure_own_memory(&self, owners: &[Owner], node_params: &NodeParams) -> Result<()> {
        owners.iter().try_for_each(|owner| match owner {
            Owner::Allocation(memory) => self.ensure_of_here(memory, || match node_params {
                NodeParams::Kernel { kernel, .. } => kernel.name().into(),
                other => other.kind().to_string().into(),
            }),
            _ => Ok(()),
        })
    }

    /// Refuses copies and fills of memory that a node of the same graph frees. Kernels are not
    /// covered: they have the address as a number, and existing nodes may be set to it.
    pub(crate) fn ensure_not_freed(&self, owners: &[Owner], node_params: &NodeParams) -> Result<()> {
        if self.memory.is_empty() {
            return Ok(());
        }
        let addresses = match node_params {
            NodeParams::Memcpy(layout) => [layout.source.address, layout.destination.address],
            NodeParams::Memset(layout) => [layout.address; 2],
            NodeParams::Empty
            | NodeParams::Kernel { .. }
            | NodeParams::Host(_)
            | NodeParams::EventRecord(_)
            | NodeParams::EventWait(_)
            | NodeParams::Batch(_)
            | NodeParams::Alloc { .. }
            | NodeParams::Free { .. }
            | NodeParams::SignalSemaphores(_)
            | NodeParams::WaitSemaphores(_)
            | NodeParams::Child { .. }
            | NodeParams::Conditional(_)
            | NodeParams::Other { .. } => return Ok(()),
        };
        // The owner given with an address may own something else.
        let is_in = |memory: &Allocation| {
            addresses
                .iter()
                .any(|at| at.checked_sub(memory.address()).is_some_and(|at| at < memory.bytes() as u64))
        };
        owners.iter().try_for_each(|owner| match owner {
            Owner::Allocation(memory) if is_in(memory) => self.ensure_no_free(memory, node_params.kind()),
            _ => Ok(()),
        })
    }

    fn ensure_no_free(&self, memory: &Arc<Allocation>, kind: NodeKind) -> Result<()> {
        let within = |id| self.record(id).map(|record| record.within);
        match self.memory.life_of(memory) {
            Some(Life { alloc, free: Some(free) }) if within(alloc) == within(free) => {
                Err(Error::Memory(MemoryError::FreedBefore {
                    kind,
                    memory: self.name(alloc),
                    free: self.name(free),
                }))
            }
            None | Some(Life { .. }) => Ok(()),
        }
    }

    /// Refuses to remove a node, an edge from it, or the graph in it, from a graph with memory
    /// nodes.
    #[inline]
    pub(crate) fn ensure_may_lose(&self, node: NodeId, what: &'static str) -> Result<()> {
        if self.memory.is_empty() { Ok(()) } else { self.ensure_without_memory_around(node, what) }
    }

    #[cold]
    fn ensure_without_memory_around(&self, node: NodeId, what: &'static str) -> Result<()> {
        let subgraph = self.record(node).map(|record| record.within);
        subgraph.map_or(Ok(()), |subgraph| self.ensure_without_memory(subgraph, what))
    }

    /// Refuses memory nodes in a graph and the graphs embedded there.
    fn ensure_without_memory(&self, subgraph: SubgraphId, what: &'static str) -> Result<()> {
        let mut memory = self.memory.nodes().filter_map(|id| self.record(id));
        match memory.any(|record| self.self_and_ancestors(record.within).any(|around| around == subgraph)) {
            true => Err(Error::Memory(MemoryError::KeepsAll { what })),
            false => Ok(()),
        }
    }
}
