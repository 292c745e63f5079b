//! Writes of memory that all executables of a graph share.

use super::collect::{Depth, collect};
use super::model::{AddressSpace, MemoryAccess, Opaqueness};
use crate::error::{CacheError, Result};
use crate::state::bindings::{Binding, Place};
use crate::state::guard::GraphGuard;
use crate::state::params::NodeParams;

impl GraphGuard<'_> {
    /// Refuses a graph with a node that writes, or may write, memory that is no graph parameter.
    pub(crate) fn ensure_writes_are_params(&mut self) -> Result<()> {
        let model = collect(self, Depth::Accesses)?;
        for node in &model.nodes {
            if let Some(opaque) = node.opaque {
                return Err(CacheError::MayWrite { node: (&*node.name).into(), why: reason(opaque) }.into());
            }
        }
        for access in &model.accesses {
            let Some(node) = model.nodes.get(access.node as usize) else { continue };
            let is_shared = access.space == AddressSpace::Memory
                && access.kind.writes()
                && !self.bindings.get(node.id).is_some_and(|binding| self.is_param(binding, node.id, access));
            if is_shared {
                return Err(CacheError::SharedWrite { node: (&*node.name).into(), what: access.role }.into());
            }
        }
        Ok(())
    }

    /// Whether the memory of an access is a graph parameter.
    fn is_param(&self, binding: &Binding, id: crate::state::ids::NodeId, access: &MemoryAccess) -> bool {
        let of_argument = |position: usize| {
            let params = self.record(id).map(|record| &record.node_params);
            let Some(NodeParams::Kernel { accesses, .. }) = params else { return false };
            let names = accesses.declaration().map(|declaration| declaration.names);
            access.is_argument && names.and_then(|names| names.get(position)) == Some(&access.role)
        };
        binding.uses.iter().any(|one| match one.place {
            Place::Argument(position) => of_argument(position),
            Place::Target | Place::Destination => !access.is_argument,
            Place::Length { .. }
            | Place::Config
            | Place::Grid(..)
            | Place::Value
            | Place::Source
            | Place::Tested
            | Place::Event
            | Place::Enabled => false,
        })
    }
}

fn reason(opaque: Opaqueness) -> &'static str {
    match opaque {
        Opaqueness::Kernel => "its kernel is untyped",
        Opaqueness::Changed => "other code has changed its arguments",
        Opaqueness::Host => "it is a host function",
        Opaqueness::Foreign => "it was added by other code",
    }
}
