//! The addresses of a graph's allocation nodes.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::memory::{ALIGNMENT, STEP, Stretch};

/// Where an allocation node allocates.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub(crate) start: u64,
    /// A multiple of the grain.
    len: u64,
    stretch: Arc<Stretch>,
    device: i32,
}

/// A range that the graph frees: for allocation nodes that come after the free node.
#[derive(Debug)]
struct Hole {
    range: Range,
    free: u64,
}

/// The addresses that a graph has given to its allocation nodes.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// The newest stretch of each device, and how much of it is given.
    stretches: BTreeMap<i32, (Arc<Stretch>, u64)>,
    holes: Vec<Hole>,
}

impl Arena {
    /// The free nodes of the holes on a device.
    pub(crate) fn free_nodes(&self, device: i32) -> HashSet<u64> {
        self.holes.iter().filter(|hole| hole.range.device == device).map(|hole| hole.free).collect()
    }

    /// The free node frees the range.
    pub(crate) fn free(&mut self, range: Range, free: u64) {
        self.holes.push(Hole { range, free });
    }

    /// A range for an allocation node that comes after some of the free nodes: of what these free,
    /// next to each other, the first that is large enough. `None` if no addresses are left.
    pub(crate) fn place(&mut self, len: usize, device: i32, before: &HashSet<u64>) -> Option<Range> {
        let len = (len as u64).checked_next_multiple_of(ALIGNMENT)?;
        self.refill(len, device, before).or_else(|| self.extend(len, device))
    }

    fn refill(&mut self, len: u64, device: i32, before: &HashSet<u64>) -> Option<Range> {
        let usable = |hole: &Hole| hole.range.device == device && before.contains(&hole.free);
        let (mut fitting, other): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.holes).into_iter().partition(usable);
        self.holes = other;
        fitting.sort_by_key(|hole| hole.range.start);
        let found = first_run(&fitting, len);
        let Some(range) = found else {
            self.holes.append(&mut fitting);
            return None;
        };
        // What is left of the holes stays.
        let end = range.start + range.len;
        for Hole { range: mut left, free } in fitting {
            if (range.start..end).contains(&left.start) {
                let cut = left.len.min(end - left.start);
                (left.start, left.len) = (left.start + cut, left.len - cut);
            }
            if left.len > 0 {
                self.holes.push(Hole { range: left, free });
            }
        }
        Some(range)
    }

    /// A range that was not given yet. Large memory begins a step of its own.
    fn extend(&mut self, len: u64, device: i32) -> Option<Range> {
        let newest = self.stretches.get(&device);
        let at = newest.map(|(_, given)| if len < STEP { *given } else { given.next_multiple_of(STEP) });
        let fits = newest.zip(at).filter(|((stretch, _), at)| at.saturating_add(len) <= stretch.len);
        let (stretch, at) = match fits {
            Some(((stretch, _), at)) => (Arc::clone(stretch), at),
            None => (Stretch::new(len)?, 0),
        };
        self.stretches.insert(device, (Arc::clone(&stretch), at.saturating_add(len)));
        Some(Range { start: stretch.start + at, len, stretch, device })
    }
}

/// The first range of this length in holes that lie next to each other, in the order of their
/// addresses.
fn first_run(holes: &[Hole], len: u64) -> Option<Range> {
    let mut run: Option<Range> = None;
    for Hole { range, .. } in holes {
        run = match run {
            Some(mut run)
                if run.start + run.len == range.start && Arc::ptr_eq(&run.stretch, &range.stretch) =>
            {
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
