//! Deferred drops: everything that leaves a hierarchy's state is dropped only after its lock is
//! released, since destructors may use graphs.

use cuda_handles::Owner;
use smallvec::SmallVec;

use crate::state::nodes::NodeRecord;
use crate::state::owners::Owners;
use crate::state::unread::UnreadNodes;

/// Records that were taken out of the state.
pub(crate) type TakenNodes = SmallVec<[TakenNode; 1]>;

/// A record that was taken out of the state, with the owners that no other node uses.
#[derive(Debug)]
pub(crate) struct TakenNode {
    pub(crate) record: NodeRecord,
    pub(super) _owners: Owners,
}

/// Records and owners to drop once the lock is released.
#[derive(Debug, Default)]
pub(crate) struct DeferredDrops {
    pub(super) records: Vec<TakenNode>,
    pub(super) owners: Vec<Owner>,
    pub(super) unread: Vec<Box<dyn UnreadNodes>>,
}
