//! The access history of a range of memory.
//!
//! The range is cut where accesses begin or end. A segment tree over the pieces holds each access
//! at few of its nodes, however many pieces the access has. A new access is compared with those
//! above its pieces in the tree and with those below.
//!
//! An access that a later one covers and comes after is removed: whatever may run concurrently with
//! it may also run concurrently with the later one. So a chain of a hundred thousand writes costs
//! one comparison each.

use smallvec::SmallVec;

use super::region::ByteRange;

/// An access, by its number in the model.
pub(crate) type AccessNumber = u32;

/// The fate of an access that a new one was compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Stays,
    /// The new one comes after it and covers it, so it can be removed.
    Covered,
}

/// Compares a new access with an earlier one. `covers` says whether the new one has all bytes of
/// the tree node where they meet.
pub(crate) trait CompareAccesses {
    /// Returns `None` to stop.
    fn compare(&mut self, before: AccessNumber, covers: bool) -> Option<Fate>;
}

/// The accesses to a range of memory that still matter.
#[derive(Debug)]
pub(crate) struct AccessHistory {
    /// The addresses at which pieces begin.
    cuts: Vec<u64>,
    nodes: Vec<TreeNode>,
}

/// A node of the tree.
#[derive(Clone, Debug, Default)]
struct TreeNode {
    writes: SmallVec<[AccessNumber; 2]>,
    reads: SmallVec<[AccessNumber; 2]>,
    /// Whether tree nodes below have any.
    writes_below: bool,
    reads_below: bool,
}

/// A new access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewAccess {
    pub(crate) entry: AccessNumber,
    pub(crate) bounds: ByteRange,
    pub(crate) writes: bool,
}

/// How many earlier reads a new read is compared with, to remove those that it covers.
const FEW: usize = 4;

impl AccessHistory {
    /// A history for accesses with these bounds.
    pub(crate) fn new(bounds: impl Iterator<Item = ByteRange>) -> Self {
        let mut cuts: Vec<u64> = bounds.flat_map(|(start, end)| [start, end]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let pieces = cuts.len().saturating_sub(1).max(1);
        Self { cuts, nodes: vec![TreeNode::default(); 2 * pieces.next_power_of_two()] }
    }

    /// Compares an access with all conflicting ones that share bytes with it, then adds it. `None`
    /// if the comparison stopped.
    pub(crate) fn enter(&mut self, new: NewAccess, compare: &mut impl CompareAccesses) -> Option<()> {
        let piece = |address| self.cuts.partition_point(|cut| *cut < address);
        let range = (piece(new.bounds.0), piece(new.bounds.1));
        self.visit(1, (0, self.nodes.len() / 2), range, new, compare)
    }

    fn visit(
        &mut self,
        node: usize,
        (first, end): (usize, usize),
        range: (usize, usize),
        new: NewAccess,
        compare: &mut impl CompareAccesses,
    ) -> Option<()> {
        if range.0 <= first && end <= range.1 {
            self.compare_all_below(node, new, compare)?;
            let place = &mut self.nodes[node];
            if new.writes { &mut place.writes } else { &mut place.reads }.push(new.entry);
            return Some(());
        }
        self.compare_at(node, false, new, compare)?;
        let middle = first.midpoint(end);
        if range.0 < middle {
            self.visit(2 * node, (first, middle), range, new, compare)?;
        }
        if range.1 > middle {
            self.visit(2 * node + 1, (middle, end), range, new, compare)?;
        }
        self.note_below(node);
        Some(())
    }

    fn note_below(&mut self, node: usize) {
        let below = [2 * node, 2 * node + 1].map(|child| &self.nodes[child]);
        let writes_below = below.iter().any(|place| place.writes_below || !place.writes.is_empty());
        let reads_below = below.iter().any(|place| place.reads_below || !place.reads.is_empty());
        let place = &mut self.nodes[node];
        (place.writes_below, place.reads_below) = (writes_below, reads_below);
    }

    fn compare_all_below(
        &mut self,
        node: usize,
        new: NewAccess,
        compare: &mut impl CompareAccesses,
    ) -> Option<()> {
        self.compare_at(node, true, new, compare)?;
        let place = &self.nodes[node];
        if place.writes_below || (new.writes && place.reads_below) {
            self.compare_all_below(2 * node, new, compare)?;
            self.compare_all_below(2 * node + 1, new, compare)?;
            self.note_below(node);
        }
        Some(())
    }

    fn compare_at(
        &mut self,
        node: usize,
        covers: bool,
        new: NewAccess,
        compare: &mut impl CompareAccesses,
    ) -> Option<()> {
        let place = &mut self.nodes[node];
        // A read does not stand for an earlier write.
        let covers_writes = covers && new.writes;
        retain(&mut place.writes, 0, |entry| Some(compare.compare(entry, covers_writes)? == Fate::Stays))?;
        if new.writes {
            retain(&mut place.reads, 0, |entry| Some(compare.compare(entry, covers)? == Fate::Stays))
        } else if covers {
            let from = place.reads.len().saturating_sub(FEW);
            retain(&mut place.reads, from, |entry| Some(compare.compare(entry, true)? == Fate::Stays))
        } else {
            Some(())
        }
    }
}

/// Keeps the entries from a position on for which `stays` returns true.
fn retain(
    entries: &mut SmallVec<[AccessNumber; 2]>,
    from: usize,
    mut stays: impl FnMut(AccessNumber) -> Option<bool>,
) -> Option<()> {
    let mut kept = from;
    for at in from..entries.len() {
        let entry = entries[at];
        if stays(entry)? {
            entries[kept] = entry;
            kept += 1;
        }
    }
    entries.truncate(kept);
    Some(())
}
