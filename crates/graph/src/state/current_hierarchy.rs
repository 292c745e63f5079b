//! The hierarchy that the graphs of a state belong to now, for the map of raw handles.

use cuda_handles::internal::{Lock, LockGuard, Rank};
use std::any::Any;
use std::sync::{Arc, Weak};

type AnyHierarchy = Weak<dyn Any + Send + Sync>;

/// The hierarchy that a state belongs to now. All graphs that the state has registered in the map
/// of raw handles share this cell, so that moving the state to another hierarchy moves them at
/// once.
///
/// Its lock is taken under the lock of the map. The hierarchy's type is erased, since the state is
/// below the hierarchy and does not know it.
#[derive(Debug)]
pub(crate) struct CurrentHierarchy(Lock<AnyHierarchy>);

impl CurrentHierarchy {
    pub(crate) fn new<H: Any + Send + Sync>(hierarchy: &Arc<H>) -> Arc<Self> {
        let hierarchy: Weak<H> = Arc::downgrade(hierarchy);
        Arc::new(Self(Lock::new(Rank::HierarchyRoot, hierarchy)))
    }

    /// Records that the state belongs to another hierarchy from now on.
    pub(crate) fn set<H: Any + Send + Sync>(&self, hierarchy: &Arc<H>) {
        let hierarchy: Weak<H> = Arc::downgrade(hierarchy);
        *self.get() = hierarchy;
    }

    pub(crate) fn get(&self) -> LockGuard<'_, AnyHierarchy> {
        self.0.lock()
    }
}
