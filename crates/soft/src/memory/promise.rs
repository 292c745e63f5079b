//! Addresses that graphs have promised to allocation nodes, which get memory there when they are reached.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use super::{GRAIN, with_shared};

/// An address that a graph has promised to allocation nodes.
#[derive(Debug)]
struct Promise {
    len: usize,
    /// Those nodes, for messages.
    nodes: Vec<u64>,
}

static PROMISED: RwLock<BTreeMap<u64, Promise>> = RwLock::new(BTreeMap::new());

/// An address for memory that a graph will allocate. Small ones lie [`GRAIN`] apart, as those of the real driver do.
pub(crate) fn promise(len: usize) -> u64 {
    let span = (len as u64 + 1).next_multiple_of(GRAIN);
    let address = with_shared(|shared| {
        let start = shared.addresses.next;
        shared.addresses.next += span;
        start
    });
    let promise = Promise { len, nodes: Vec::new() };
    PROMISED.write().unwrap_or_else(PoisonError::into_inner).insert(address, promise);
    address
}

/// Notes a node that allocates at a promised address.
pub(crate) fn promise_to(address: u64, node: u64) {
    let mut promised = PROMISED.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(promise) = promised.get_mut(&address) {
        promise.nodes.push(node);
    }
}

/// Takes a promise back.
pub(crate) fn unpromise(address: u64) {
    PROMISED.write().unwrap_or_else(PoisonError::into_inner).remove(&address);
}

/// Whether the range lies in memory that a graph will allocate.
pub(crate) fn is_promised(address: u64, len: usize) -> bool {
    let promised = PROMISED.read().unwrap_or_else(PoisonError::into_inner);
    let found = promised.range(..=address).next_back();
    found.is_some_and(|(start, room)| address.saturating_add(len as u64) <= start + room.len as u64)
}

/// What is said of an address that a graph has promised and that holds nothing now.
pub(super) fn describe_promised(address: u64) -> Option<String> {
    let promised = PROMISED.read().unwrap_or_else(PoisonError::into_inner);
    let (start, promise) = promised.range(..=address).next_back()?;
    if address >= start + promise.len as u64 {
        return None;
    }
    let nodes: Vec<String> = promise.nodes.iter().map(|node| format!("{node:#x}")).collect();
    Some(format!(
        "the {} bytes at {start:#x} are those of allocation node {}, which has not been reached: the use is not ordered after that node",
        promise.len,
        nodes.join(" or ")
    ))
}
