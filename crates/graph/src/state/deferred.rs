//! What leaves a hierarchy's state is dropped only after its lock is given back: destructors may use
//! graphs.

use cuda_handles::Owner;
use smallvec::SmallVec;

use crate::state::nodes::NodeRecord;
use crate::state::owners::Owners;

/// Records taken out of the state.
pub(crate) type TakenNodes = SmallVec<[TakenNode; 1]>;

/// A record taken out of the state, with the owners that no other node uses.
#[derive(Debug)]
pub(crate) struct TakenNode {
    pub(crate) record: NodeRecord,
    pub(super) _owners: Owners,
}

/// Records and owners to be dropped once the lock is given back.
#[derive(Debug, Default)]
pub(crate) struct DeferredDrops {
    pub(super) records: Vec<TakenNode>,
    pub(super) owners: Vec<Owner>,
}
