//! Payloads: the values of user objects.

use super::failure;
use crate::sync::{Lock, Rank};

/// The value of a user object, until its destructor or its last handle releases it.
pub(crate) struct Payload {
    value: Lock<Option<Box<dyn Send>>>,
}

impl Payload {
    pub(crate) fn new(value: Box<dyn Send>) -> Self {
        Self { value: Lock::new(Rank::Payload, Some(value)) }
    }

    /// Drops the value, unless that has happened. A panic in its drop is caught and reported.
    pub(crate) fn release(&self) {
        let value = self.value.lock().take();
        failure::dropping("dropping what a user object has", || drop(value));
    }
}

/// For a payload that no user object was made of.
impl Drop for Payload {
    fn drop(&mut self) {
        self.release();
    }
}
