//! The contexts whose memory a context can access.

use std::sync::{Arc, Weak};

use crate::sync::{Lock, Rank};

/// The contexts whose plain memory a context can access, by their boxes of type `B`: the driver may
/// give the address of a destroyed context to another one.
pub(super) struct Peers<B>(Lock<Vec<Weak<B>>>);

impl<B> Peers<B> {
    pub(super) const fn new() -> Self {
        Self(Lock::new(Rank::Peers, Vec::new()))
    }

    pub(super) fn has(&self, other: &Arc<B>) -> bool {
        self.0.lock().iter().any(|known| known.as_ptr() == Arc::as_ptr(other))
    }

    pub(super) fn add(&self, other: &Arc<B>) {
        let mut known = self.0.lock();
        known.retain(|one| one.strong_count() > 0);
        if !known.iter().any(|one| one.as_ptr() == Arc::as_ptr(other)) {
            known.push(Arc::downgrade(other));
        }
    }
}
