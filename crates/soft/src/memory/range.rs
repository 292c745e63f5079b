//! Stretches of addresses for the memory of graphs.

use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::addresses;

/// The steps in which a device maps memory for graphs, and where large memory starts.
pub(crate) const STEP: u64 = 32 << 20;
/// What a graph gets at least: addresses cost nothing.
const LEAST: u64 = 1 << 30;

/// Addresses that one graph has. They go to the next graph once nothing has them.
#[derive(Debug)]
pub(crate) struct AddressRange {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

/// What was given back, by length, the newest last.
static FREE: Mutex<BTreeMap<u64, Vec<u64>>> = Mutex::new(BTreeMap::new());

impl AddressRange {
    /// A stretch for so many bytes at least; `None` if no addresses are left. As on a GPU it is the
    /// one that was given back last.
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
