//! Everything that an executable keeps alive.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use cuda_handles::internal::{FormerStream, Lock, Rank, Retired};
use cuda_handles::{Context, Owner, Stream};

use crate::state::ids::NodeId;
use crate::state::owners::Owners;

/// The value of an executable's user object.
///
/// The **base** is everything that the graph kept alive when the executable was made. Only the next
/// whole update lets go of it, by replacing the user object. Beside it is what **node updates have
/// brought since**, by node. The next update of the same node retires that: runs in flight may use
/// it.
#[derive(Debug)]
pub(crate) struct ExecShare {
    _base: Vec<Owner>,
    brought: Lock<HashMap<NodeId, Brought>>,
    retired: OnceLock<Retired>,
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

impl ExecShare {
    pub(crate) fn new(base: Vec<Owner>) -> Arc<Self> {
        let brought = Lock::new(Rank::ExecShare, HashMap::new());
        Arc::new(Self { _base: base, brought, retired: OnceLock::new() })
    }

    /// Keeps what an update of a node has brought. Returns what earlier ones have brought to it and
    /// to nodes inside of it.
    pub(crate) fn bring(&self, id: NodeId, brought: Brought, inside: &[NodeId]) -> Option<Brought> {
        let mut known = self.brought.lock();
        let mut before = known.insert(id, brought);
        for inner in inside.iter().filter_map(|id| known.remove(id)) {
            before.get_or_insert_default().owners.extend(inner);
        }
        before
    }

    /// Keeps owners until the runs up to now, the last of which is on `behind`, are over.
    pub(crate) fn retire(
        &self,
        context: &Context,
        brought: Brought,
        behind: Option<&Stream>,
    ) -> Option<FormerStream> {
        self.retired.get_or_init(|| Retired::new(context)).push(brought, behind)
    }

    /// Notes a launch. Returns whether retired owners are left here.
    pub(crate) fn launched(&self, stream: &Stream) -> bool {
        self.retired.get().is_some_and(|retired| retired.launched(stream))
    }

    /// Lets the reaper take all retired owners.
    pub(crate) fn hand_over(&self) {
        if let Some(retired) = self.retired.get() {
            retired.hand_over();
        }
    }
}
