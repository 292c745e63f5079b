//! The log of freed allocations, for messages about stray accesses.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Mutex;

use super::allocation::Origin;
use crate::sync::lock;

/// The most freed allocations that are remembered.
const REMEMBERED: usize = 4096;

/// A freed allocation, for messages.
#[derive(Debug)]
pub(super) struct Freed {
    pub(super) start: u64,
    pub(super) len: usize,
    pub(super) origin: Origin,
    /// The call that freed it.
    pub(super) how: Cow<'static, str>,
}

static FREED: Mutex<VecDeque<Freed>> = Mutex::new(VecDeque::new());

/// Logs a freed allocation. The oldest one is forgotten.
pub(super) fn remember(gone: Freed) {
    let mut freed = lock(&FREED);
    if freed.len() == REMEMBERED {
        freed.pop_front();
    }
    freed.push_back(gone);
}

/// Describes the newest freed allocation that held an address.
pub(super) fn describe(address: u64) -> Option<String> {
    let freed = lock(&FREED);
    let inside = |gone: &&Freed| (gone.start..gone.start + gone.len as u64).contains(&address);
    let gone = freed.iter().rev().find(inside)?;
    let (kind, start) = (gone.origin.noun(), gone.start);
    Some(format!("it lies in the {}-byte {kind} at {start:#x} that {} freed", gone.len, gone.how))
}
