//! The address space of a graph: the addresses of its allocation nodes.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::memory::{ALIGNMENT, AddressRange, STEP};

/// The addresses of an allocation node.
#[derive(Debug, Clone)]
pub(crate) struct NodeAddresses {
    pub(crate) start: u64,
    /// A multiple of the alignment.
    len: u64,
    block: Arc<AddressRange>,
    device: i32,
}

/// Addresses that the graph frees, for allocation nodes that come after the free node.
#[derive(Debug)]
struct FreedAddresses {
    range: NodeAddresses,
    free: u64,
}

/// The addresses that a graph assigns to its allocation nodes.
#[derive(Debug, Default)]
pub(crate) struct AddressSpace {
    /// The newest range of each device, and how much of it is assigned.
    ranges: BTreeMap<i32, (Arc<AddressRange>, u64)>,
    freed: Vec<FreedAddresses>,
}

impl AddressSpace {
    /// The free nodes that freed addresses on a device.
    pub(crate) fn free_nodes(&self, device: i32) -> HashSet<u64> {
        self.freed.iter().filter(|freed| freed.range.device == device).map(|freed| freed.free).collect()
    }

    /// Adds addresses that a free node frees.
    pub(crate) fn free(&mut self, range: NodeAddresses, free: u64) {
        self.freed.push(FreedAddresses { range, free });
    }

    /// Assigns addresses to an allocation node that comes after the free nodes in `before`: the
    /// first contiguous addresses that these free and that are large enough, or new ones. `None` if
    /// no addresses are left.
    pub(crate) fn place(&mut self, len: usize, device: i32, before: &HashSet<u64>) -> Option<NodeAddresses> {
        let len = (len as u64).checked_next_multiple_of(ALIGNMENT)?;
        self.refill(len, device, before).or_else(|| self.extend(len, device))
    }

    fn refill(&mut self, len: u64, device: i32, before: &HashSet<u64>) -> Option<NodeAddresses> {
        let usable = |freed: &FreedAddresses| freed.range.device == device && before.contains(&freed.free);
        let (mut fitting, other): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.freed).into_iter().partition(usable);
        self.freed = other;
        fitting.sort_by_key(|freed| freed.range.start);
        let found = first_run(&fitting, len);
        let Some(range) = found else {
            self.freed.append(&mut fitting);
            return None;
        };
        // The rest stays free.
        let end = range.start + range.len;
        for FreedAddresses { range: mut left, free } in fitting {
            if (range.start..end).contains(&left.start) {
                let cut = left.len.min(end - left.start);
                (left.start, left.len) = (left.start + cut, left.len - cut);
            }
            if left.len > 0 {
                self.freed.push(FreedAddresses { range: left, free });
            }
        }
        Some(range)
    }

    /// Assigns new addresses. Large memory starts at a chunk of its own.
    fn extend(&mut self, len: u64, device: i32) -> Option<NodeAddresses> {
        let newest = self.ranges.get(&device);
        let at = newest.map(|(_, given)| if len < STEP { *given } else { given.next_multiple_of(STEP) });
        let fits = newest.zip(at).filter(|((block, _), at)| at.saturating_add(len) <= block.len);
        let (block, at) = match fits {
            Some(((block, _), at)) => (Arc::clone(block), at),
            None => (AddressRange::new(len)?, 0),
        };
        self.ranges.insert(device, (Arc::clone(&block), at.saturating_add(len)));
        Some(NodeAddresses { start: block.start + at, len, block, device })
    }
}

/// The first contiguous addresses of this length; `holes` are sorted by address.
fn first_run(freed: &[FreedAddresses], len: u64) -> Option<NodeAddresses> {
    let mut run: Option<NodeAddresses> = None;
    for FreedAddresses { range, .. } in freed {
        run = match run {
            Some(mut run) if run.start + run.len == range.start && Arc::ptr_eq(&run.block, &range.block) => {
                run.len += range.len;
                Some(run)
            }
            _ => Some(range.clone()),
        };
        if let Some(run) = run.as_mut().filter(|run| run.len >= len) {
            run.len = len;
            return Some(run.clone());
        }
    }
    None
}
