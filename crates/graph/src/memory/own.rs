//! What graphs with memory of their own refuse.

use std::sync::Arc;

use cuda_handles::{Allocation, Kernel, Owner};

use crate::detail::Detail;
use crate::error::{Error, Result};
use crate::graph::Locked;
use crate::place::{NodeId, Place};

impl Locked<'_> {
    /// Refuses memory of allocation nodes of another hierarchy. `node` says who was given it.
    #[inline]
    pub(crate) fn ensure_of_here(&self, memory: &Allocation, node: impl FnOnce() -> Box<str>) -> Result<()> {
        match memory.graph() {
            Some(graph) if graph != self.number() => Err(Error::ForeignMemory { node: node() }),
            _ => Ok(()),
        }
    }

    /// The same for the arguments of a kernel.
    #[inline]
    pub(crate) fn ensure_own_arguments(&self, used: &[&Arc<Allocation>], kernel: &Kernel) -> Result<()> {
        used.iter().try_for_each(|memory| self.ensure_of_here(memory, || kernel.name().into()))
    }

    /// The same for all that a node is to use.
    pub(crate) fn ensure_own_memory(&self, owners: &[Owner], detail: &Detail) -> Result<()> {
        owners.iter().try_for_each(|owner| match owner {
            Owner::Allocation(memory) => self.ensure_of_here(memory, || match detail {
                Detail::Kernel { kernel, .. } => kernel.name().into(),
                other => other.kind().to_string().into(),
            }),
            _ => Ok(()),
        })
    }

    /// Refuses to take away a node, or an edge from it, where there are memory nodes.
    #[inline]
    pub(crate) fn ensure_may_lose(&self, node: NodeId, what: &'static str) -> Result<()> {
        if self.memory.is_empty() { Ok(()) } else { self.ensure_without_memory_around(node, what) }
    }

    /// Refuses to take away a graph with memory nodes: others in the hierarchy may use the memory.
    pub(crate) fn ensure_may_lose_graph(&self, place: Place) -> Result<()> {
        self.ensure_without_memory(place, "graph")
    }

    #[cold]
    fn ensure_without_memory_around(&self, node: NodeId, what: &'static str) -> Result<()> {
        let place = self.row(node).map(|row| row.within);
        place.map_or(Ok(()), |place| self.ensure_without_memory(place, what))
    }

    /// No memory nodes in a graph and those embedded there.
    fn ensure_without_memory(&self, place: Place, what: &'static str) -> Result<()> {
        let mut memory = self.memory.nodes().filter_map(|id| self.row(id));
        match memory.any(|row| self.outwards(row.within).any(|around| around == place)) {
            true => Err(Error::KeepsAll { what }),
            false => Ok(()),
        }
    }
}
