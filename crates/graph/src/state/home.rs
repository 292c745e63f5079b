//! The hierarchy that graphs are of, as it is known to what finds graphs by their raw values.

use core::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

type Hierarchy = Weak<dyn Any + Send + Sync>;

/// The hierarchy that graphs are of. All that a table has entered share it, so that they follow it
/// into another hierarchy at once. Its lock is taken under that of the shared graphs. A table does
/// not know what it lies in: so the type is left open.
#[derive(Debug)]
pub(crate) struct Home(Mutex<Hierarchy>);

impl Home {
    pub(crate) fn new<R: Any + Send + Sync>(root: &Arc<R>) -> Arc<Self> {
        let root: Weak<R> = Arc::downgrade(root);
        Arc::new(Self(Mutex::new(root)))
    }

    /// From now on it is this one.
    pub(crate) fn move_to<R: Any + Send + Sync>(&self, root: &Arc<R>) {
        let root: Weak<R> = Arc::downgrade(root);
        *self.root() = root;
    }

    pub(crate) fn root(&self) -> MutexGuard<'_, Hierarchy> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
