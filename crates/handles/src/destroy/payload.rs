//! Payloads: the values of user objects.

use std::sync::atomic::{AtomicBool, Ordering};

use super::failure;
use super::pending::expect_one;
use crate::sync::{Lock, Rank};

/// The value of a user object, until its destructor or its last handle releases it.
pub(crate) struct Payload {
    value: Lock<Option<Box<dyn Send>>>,
    /// Whether it is counted as a value that the driver has yet to give back.
    owed: AtomicBool,
}

impl Payload {
    pub(crate) fn new(value: Box<dyn Send>) -> Self {
        Self { value: Lock::new(Rank::Payload, Some(value)), owed: AtomicBool::new(false) }
    }

    /// Counts it until the driver's destructor has run, which it cannot have yet.
    pub(crate) fn owe(&self) {
        expect_one();
        self.owed.store(true, Ordering::Release);
    }

    pub(crate) fn is_owed(&self) -> bool {
        self.owed.load(Ordering::Acquire)
    }

    /// Whether it was owed. Its count is the caller's then.
    pub(crate) fn stop_owing(&self) -> bool {
        self.owed.swap(false, Ordering::AcqRel)
    }

    /// Whether it is not released yet; also true while another thread is releasing it.
    pub(crate) fn is_held(&self) -> bool {
        self.value.try_lock().is_none_or(|value| value.is_some())
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
