//! Attempts that failed in a drop and are repeated until they succeed.

use std::sync::atomic::AtomicPtr;

use super::kept::Kept;
use super::list::{List, Node};
use super::pending::expect_one;
use super::queue;
use crate::sync::process;

/// An action that is repeated until it succeeds, and never waits. Its result is dropped where
/// destructors of other code may run.
pub(crate) type Attempt = Box<dyn FnMut() -> Option<Kept> + Send>;

static ATTEMPTS: List<Attempt> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));

/// Hands it to the reaper.
pub(crate) fn attempt(attempt: Attempt) {
    if !process::is_running() {
        return;
    }
    expect_one();
    ATTEMPTS.push(Node::new(attempt));
    queue::wake();
}

/// Whether something is left to be tried.
pub(crate) fn any() -> bool {
    !ATTEMPTS.is_empty()
}

/// Makes each attempt once. Returns the results of those that succeeded; each counts as pending
/// until its result is dropped.
pub(crate) fn try_all() -> Vec<Kept> {
    let (mut over, mut refused) = (Vec::new(), Vec::new());
    for mut attempt in ATTEMPTS.take() {
        match attempt() {
            Some(owner) => over.push(owner),
            None => refused.push(attempt),
        }
    }
    refused.into_iter().for_each(|attempt| ATTEMPTS.push(Node::new(attempt)));
    over
}
