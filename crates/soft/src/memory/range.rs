//! Ranges of addresses for the memory of graphs.

use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::addresses;

/// The size of the chunks in which a device maps memory for graphs. Larger allocations start at a
/// multiple of it.
pub(crate) const STEP: u64 = 32 << 20;
/// The least that a graph gets: addresses cost nothing.
const LEAST: u64 = 1 << 30;

/// A range of addresses that one graph owns. It is reused by the next graph once it is dropped.
#[derive(Debug)]
pub(crate) struct AddressRange {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

/// Dropped ranges by length, the newest last.
static FREE: Mutex<BTreeMap<u64, Vec<u64>>> = Mutex::new(BTreeMap::new());

impl AddressRange {
    /// A range of at least `bytes`; `None` if no addresses are left. As on a GPU, the range that
    /// was dropped last is reused first.
    pub(crate) fn new(bytes: u64) -> Option<Arc<Self>> {
        let len = bytes.max(LEAST).checked_next_multiple_of(STEP)?;
        let again = lock(&FREE).get_mut(&len).and_then(Vec::pop);
        Some(Arc::new(Self { start: again.or_else(|| addresses::new_range(len, STEP))?, len }))
    }
}

impl Drop for AddressRange {
    fn drop(&mut self) {
        let mut free = lock(&FREE);
        free.entry(self.len).or_default().push(self.start);
    }
}
