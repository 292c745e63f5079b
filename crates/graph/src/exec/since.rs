//! What updates have brought to an executable.

use std::collections::HashMap;

use cuda_handles::Owner;
use cuda_handles::internal::Retired;

use crate::exec::exec_params::ExecParams;
use crate::state::ids::NodeId;
use crate::state::owners::Owners;

/// Everything that updates have brought to an executable.
#[derive(Debug, Default)]
pub(crate) struct Since {
    /// The values of graph parameters; `None` if the graph has none.
    pub(crate) params: Option<Box<ExecParams>>,
    /// The owners that updates of other nodes have brought. The next update of the same node
    /// retires them.
    pub(crate) brought: HashMap<NodeId, Brought>,
    /// The values of graph parameters that updates have replaced since the last launch.
    pub(crate) replaced: Vec<Owner>,
    /// What updates have replaced, and runs may still use.
    pub(crate) retired: Option<Retired>,
}

/// The owners that an update of a node has brought.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    pub(crate) owners: Owners,
    /// The owner in the parameters themselves, such as the kernel. Apart, so that a kernel with
    /// five buffers needs no heap.
    pub(crate) of_params: Option<Owner>,
}

impl IntoIterator for Brought {
    type Item = Owner;
    type IntoIter = core::iter::Chain<smallvec::IntoIter<[Owner; 5]>, core::option::IntoIter<Owner>>;

    fn into_iter(self) -> Self::IntoIter {
        self.owners.into_iter().chain(self.of_params)
    }
}

impl Since {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { params, brought, replaced, retired } = self;
        params.is_none() && brought.is_empty() && replaced.is_empty() && retired.is_none()
    }

    /// Keeps what an update of a node has brought. Returns what earlier ones have brought to it and
    /// to nodes inside of it.
    pub(crate) fn bring(&mut self, id: NodeId, brought: Brought, inside: &[NodeId]) -> Option<Brought> {
        let mut before = self.brought.insert(id, brought);
        for inner in inside.iter().filter_map(|id| self.brought.remove(id)) {
            before.get_or_insert_default().owners.extend(inner);
        }
        before
    }
}
