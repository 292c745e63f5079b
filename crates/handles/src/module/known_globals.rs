//! The variables of a library that have owners: one allocation for each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::memory::Allocation;
use crate::sync::{Lock, Rank};

/// By name. The library keeps no variable; a variable keeps its library.
pub(crate) struct Globals {
    known: Lock<Vec<(Box<str>, Weak<Allocation>)>>,
    /// Whether one was ever given to the user.
    were_given: AtomicBool,
}

impl Default for Globals {
    fn default() -> Self {
        Self { known: Lock::new(Rank::LibraryVariables, Vec::new()), were_given: AtomicBool::new(false) }
    }
}

impl Globals {
    /// The variable, if it has an owner.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Allocation>> {
        let known = self.known.lock();
        known.iter().find(|(other, _)| &**other == name).and_then(|(_, variable)| variable.upgrade())
    }

    /// Whether a variable was ever given to the user.
    pub(crate) fn were_given(&self) -> bool {
        self.were_given.load(Ordering::Acquire)
    }

    /// Adds a variable; returns the existing one if another thread was faster.
    pub(crate) fn insert(&self, name: &str, variable: Arc<Allocation>) -> Arc<Allocation> {
        self.were_given.store(true, Ordering::Release);
        let mut known = self.known.lock();
        known.retain(|(_, variable)| variable.strong_count() > 0);
        let there = known.iter().find(|(other, _)| &**other == name);
        if let Some(there) = there.and_then(|(_, variable)| variable.upgrade()) {
            drop(known);
            // Not under the lock: it may be the last owner of the library.
            return there;
        }
        known.retain(|(other, _)| &**other != name);
        known.push((name.into(), Arc::downgrade(&variable)));
        variable
    }
}
