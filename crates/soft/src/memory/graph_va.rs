//! Addresses that graphs have reserved for allocation nodes. Memory is there once the node is
//! reached.

use crate::sync::{read, write};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{RwLock, RwLockReadGuard};

/// A range that a graph has reserved for an allocation node.
#[derive(Debug)]
struct Reserved {
    len: usize,
    /// The node, for messages.
    node: u64,
}

/// By address and number of the reservation. One range may be reserved for several nodes, each of
/// which comes after the free of the previous one.
type ReservedRanges = BTreeMap<(u64, u64), Reserved>;

static RESERVED: RwLock<ReservedRanges> = RwLock::new(BTreeMap::new());
/// The longest reservation ever: a reservation that holds an address starts at most that far below
/// it.
static LONGEST: AtomicU64 = AtomicU64::new(0);

fn reserved_ranges() -> RwLockReadGuard<'static, ReservedRanges> {
    read(&RESERVED)
}

/// Reserves a range for an allocation node; `number` counts up.
pub(crate) fn reserve(start: u64, number: u64, len: usize) {
    LONGEST.fetch_max(len as u64, Ordering::Relaxed);
    let mut reserved_ranges = write(&RESERVED);
    reserved_ranges.insert((start, number), Reserved { len, node: 0 });
}

/// Sets the node that allocates there.
pub(crate) fn set_node(start: u64, number: u64, node: u64) {
    let mut reserved_ranges = write(&RESERVED);
    if let Some(reserved) = reserved_ranges.get_mut(&(start, number)) {
        reserved.node = node;
    }
}

/// Releases a reservation.
pub(crate) fn release(start: u64, number: u64) {
    write(&RESERVED).remove(&(start, number));
}

/// The reservations that hold a range, from its address downwards.
fn holding(all: &ReservedRanges, address: u64, len: usize) -> impl Iterator<Item = (&(u64, u64), &Reserved)> {
    let end = address.saturating_add(len as u64);
    let longest = LONGEST.load(Ordering::Relaxed);
    all.range(..=(address, u64::MAX))
        .rev()
        .take_while(move |((start, _), _)| address - start < longest)
        .filter(move |((start, _), reserved)| end <= start + reserved.len as u64)
}

/// Whether a graph has reserved the range.
pub(crate) fn is_reserved(address: u64, len: usize) -> bool {
    holding(&reserved_ranges(), address, len).next().is_some()
}

/// Address and number of the newest reservation that holds an address.
pub(crate) fn newest(address: u64) -> Option<(u64, u64)> {
    holding(&reserved_ranges(), address, 1).map(|(key, _)| *key).max_by_key(|(_, number)| *number)
}

/// Describes an address that a graph has reserved and that holds no memory now.
pub(super) fn describe(address: u64) -> Option<String> {
    let reserved_ranges = reserved_ranges();
    let mut found: Vec<_> = holding(&reserved_ranges, address, 1).collect();
    found.sort_by_key(|((_, number), _)| *number);
    let ((start, _), newest) = found.last()?;
    let nodes: Vec<String> = found.iter().map(|(_, reserved)| format!("{:#x}", reserved.node)).collect();
    Some(format!(
        "the {} bytes at {start:#x} are those of allocation node {}, which has not been reached: the use is not ordered after that node",
        newest.len,
        nodes.join(" or ")
    ))
}
