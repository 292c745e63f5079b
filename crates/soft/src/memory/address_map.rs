//! The map from addresses to live allocations.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use super::allocation::{Allocation, Origin};
use super::freed::{self, Freed};
use super::{accounting, addresses};
use crate::sync::{read, write};

static MAP: RwLock<BTreeMap<u64, Arc<Allocation>>> = RwLock::new(BTreeMap::new());

/// Publishes an allocation at its address. An allocation that is there ends.
pub(super) fn publish(allocation: &Arc<Allocation>) {
    let displaced = {
        let mut map = write(&MAP);
        map.insert(allocation.start, Arc::clone(allocation))
    };
    if let Some(displaced) = displaced.filter(|other| other.id != allocation.id) {
        finish(&displaced, "a later allocation at its address".into());
    }
}

/// Publishes memory of a graph when its node is reached. Memory there that waits for its own node
/// is hidden; it may be published again.
pub(crate) fn publish_reached(allocation: &Arc<Allocation>) {
    {
        let mut map = write(&MAP);
        let hides = |other: &Allocation| other.id != allocation.id && other.is_awaited();
        let there = map.range(allocation.start..allocation.end());
        let hidden: Vec<u64> = there.filter(|(_, other)| hides(other)).map(|(start, _)| *start).collect();
        hidden.iter().for_each(|start| drop(map.remove(start)));
    }
    publish(allocation);
}

/// Publishes memory of a graph unless other memory is at its address.
pub(crate) fn publish_unless_taken(allocation: &Arc<Allocation>) {
    let mut map = write(&MAP);
    map.entry(allocation.start).or_insert_with(|| Arc::clone(allocation));
}

/// Ends an allocation; `how` names the call for messages. The bytes are freed with the last
/// reference.
pub(crate) fn remove(allocation: &Arc<Allocation>, how: impl Into<Cow<'static, str>>) {
    {
        let mut map = write(&MAP);
        if map.get(&allocation.start).is_some_and(|found| found.id == allocation.id) {
            map.remove(&allocation.start);
        }
    }
    finish(allocation, how.into());
}

/// Updates accounting, log and addresses for an allocation that ends.
fn finish(removed: &Allocation, how: Cow<'static, str>) {
    if !removed.set_gone() {
        return;
    }
    let Allocation { start, len, origin, device, .. } = *removed;
    if origin.is_counted() {
        accounting::release(device, len as u64);
    }
    freed::remember(Freed { start, len, origin, how });
    if !origin.is_host() && origin != Origin::GraphNode {
        addresses::recycle(start, len);
    }
}

/// The allocation that holds the byte at `address`.
pub(crate) fn find(address: u64) -> Option<Arc<Allocation>> {
    let map = read(&MAP);
    let (_, allocation) = map.range(..=address).next_back()?;
    (address < allocation.end()).then(|| Arc::clone(allocation))
}

/// Whether the device may only read what is at `address`.
pub(crate) fn is_read_only(address: u64) -> bool {
    find(address).is_some_and(|found| !found.is_writable())
}

/// The allocation that starts at `address`.
pub(crate) fn find_start(address: u64) -> Option<Arc<Allocation>> {
    read(&MAP).get(&address).cloned()
}

/// The allocation that holds the whole range, for the check at a call.
pub(crate) fn find_range(address: u64, len: usize) -> Option<Arc<Allocation>> {
    find(address).filter(|found| address.checked_add(len as u64).is_some_and(|end| end <= found.end()))
}

/// The origin of memory that overlaps the range, if any does.
pub(crate) fn overlapped(address: u64, len: usize) -> Option<Origin> {
    let map = read(&MAP);
    let (_, last) = map.range(..address.saturating_add(len as u64)).next_back()?;
    (last.end() > address).then_some(last.origin)
}

/// All allocations that `wanted` selects.
pub(crate) fn all(wanted: impl Fn(&Allocation) -> bool) -> Vec<Arc<Allocation>> {
    let map = read(&MAP);
    map.values().filter(|allocation| wanted(allocation)).cloned().collect()
}

/// The nearest allocations below and above an address, with their distances.
pub(super) fn neighbours(address: u64) -> [Option<(u64, Arc<Allocation>)>; 2] {
    let map = read(&MAP);
    let below = map.range(..=address).next_back();
    let above = map.range(address..).next();
    [
        below.map(|(_, found)| (address.saturating_sub(found.end()), Arc::clone(found))),
        above.map(|(start, found)| (start.saturating_sub(address), Arc::clone(found))),
    ]
}
