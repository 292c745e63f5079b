//! What was done with a range of memory so far.
//!
//! The range is cut where accesses begin or end; a tree over the pieces holds each access at few of
//! its nodes, however many pieces it has. A new access is compared with those above the pieces it
//! has, and with those below. An access that a later one covers and comes after says nothing more:
//! whatever may run beside it may also run beside the later one. So it is taken out, and a line of
//! a hundred thousand writes costs a comparison each.

use smallvec::SmallVec;

use super::region::ByteRange;

/// What is kept of an access.
pub(crate) type AccessNumber = u32;

/// What becomes of an access that a new one was compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Stays,
    /// The new one comes after it and, where it covers it, says all.
    Covered,
}

/// Compares a new access with one before. The flag says whether the new one has all the bytes of
/// the place where they meet.
pub(crate) trait CompareAccesses {
    /// `None` to stop.
    fn compare(&mut self, before: AccessNumber, covers: bool) -> Option<Fate>;
}

/// The accesses to a range of memory, as far as they still matter.
#[derive(Debug)]
pub(crate) struct AccessHistory {
    /// Where pieces begin.
    cuts: Vec<u64>,
    nodes: Vec<TreeNode>,
}

/// A node of the tree.
#[derive(Clone, Debug, Default)]
struct TreeNode {
    writes: SmallVec<[AccessNumber; 2]>,
    reads: SmallVec<[AccessNumber; 2]>,
    /// Whether there are any below.
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

/// How many reads are looked at for those that a new read makes superfluous.
const FEW: usize = 4;

impl AccessHistory {
    /// For accesses within these bounds.
    pub(crate) fn new(bounds: impl Iterator<Item = ByteRange>) -> Self {
        let mut cuts: Vec<u64> = bounds.flat_map(|(start, end)| [start, end]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let pieces = cuts.len().saturating_sub(1).max(1);
        Self { cuts, nodes: vec![TreeNode::default(); 2 * pieces.next_power_of_two()] }
    }

    /// Compares an access with all that share bytes with it and of which one writes, then enters
    /// it. `None` if the comparison stopped.
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
        // A read does not say what comes after a write.
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

/// Keeps those for which `stays` says so, from a place on.
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
