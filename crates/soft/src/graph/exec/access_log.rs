//! The accesses of kernels that ran before a kernel in front of them had ended.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;

use crate::launch::Watch;
use crate::ptx::AccessKind;
use crate::sync::{into_inner, lock};

/// A set of bytes, as ranges that neither overlap nor touch, by their starts.
#[derive(Debug, Default)]
struct ByteSet(BTreeMap<u64, u64>);

impl ByteSet {
    fn add(&mut self, mut start: u64, mut end: u64) {
        // The ranges that the new one overlaps or touches become part of it.
        while let Some((&other, &other_end)) = self.0.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            if other <= start && other_end >= end {
                return;
            }
            self.0.remove(&other);
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.0.insert(start, end);
    }

    fn overlaps(&self, start: u64, end: u64) -> bool {
        self.0.range(..end).next_back().is_some_and(|(_, other_end)| *other_end > start)
    }
}

/// The bytes that a kernel accessed.
#[derive(Debug, Default)]
struct Accesses {
    reads: ByteSet,
    writes: ByteSet,
    atomics: ByteSet,
}

impl Accesses {
    /// The participle for what conflicts with an access. Atomics do not conflict with each other.
    fn conflict(&self, start: u64, end: u64, kind: AccessKind) -> Option<&'static str> {
        let Self { reads, writes, atomics } = self;
        let of = |set: &ByteSet, verb| set.overlaps(start, end).then_some(verb);
        match kind {
            AccessKind::Read => of(writes, "written").or_else(|| of(atomics, "changed")),
            AccessKind::Write => {
                of(writes, "written").or_else(|| of(atomics, "changed")).or_else(|| of(reads, "read"))
            }
            AccessKind::Atomic => of(writes, "written").or_else(|| of(reads, "read")),
        }
    }

    fn add(&mut self, start: u64, end: u64, kind: AccessKind) {
        match kind {
            AccessKind::Read => self.reads.add(start, end),
            AccessKind::Write => self.writes.add(start, end),
            AccessKind::Atomic => self.atomics.add(start, end),
        }
    }
}

/// The accesses of a kernel while other kernels, in front of it, had not ended.
#[derive(Debug)]
pub(super) struct EarlyAccesses {
    pub(super) step: usize,
    /// The kernel and its node.
    pub(super) name: String,
    /// The steps in front of it that had not ended.
    pub(super) before: HashSet<usize>,
    accesses: Accesses,
}

/// Watches a kernel: compares its accesses with those of kernels that should be ordered with it,
/// and keeps them if kernels in front have not ended.
pub(super) struct Watcher<'a> {
    /// Kernels behind, which should have waited for this one.
    behind: Vec<&'a EarlyAccesses>,
    /// Kernels in front, which this one has not waited for.
    in_front: Vec<&'a EarlyAccesses>,
    /// The accesses of the watched kernel, if they are kept.
    kept: Option<Mutex<Accesses>>,
}

impl<'a> Watcher<'a> {
    /// Watches step `step`, with the steps in front of it that have not ended; `None` if there is
    /// nothing to compare and nothing to keep.
    pub(super) fn of(step: usize, before: &HashSet<usize>, early: &'a [EarlyAccesses]) -> Option<Self> {
        let behind: Vec<_> = early.iter().filter(|other| other.before.contains(&step)).collect();
        let in_front: Vec<_> = early.iter().filter(|other| before.contains(&other.step)).collect();
        let kept = (!before.is_empty()).then(Mutex::default);
        (kept.is_some() || !behind.is_empty()).then_some(Self { behind, in_front, kept })
    }

    /// The kept accesses.
    pub(super) fn into_accesses(
        self,
        step: usize,
        name: String,
        before: HashSet<usize>,
    ) -> Option<EarlyAccesses> {
        let accesses = into_inner(self.kept?);
        Some(EarlyAccesses { step, name, before, accesses })
    }
}

impl Watch for Watcher<'_> {
    fn note(&self, address: u64, len: usize, kind: AccessKind) -> Result<(), String> {
        let end = address.saturating_add(len as u64);
        let find = |others: &[&EarlyAccesses]| {
            others
                .iter()
                .find_map(|other| Some((other.name.clone(), other.accesses.conflict(address, end, kind)?)))
        };
        if let Some((name, verb)) = find(&self.behind) {
            return Err(format!(
                "{name}, which is behind this one in the graph, has {verb} these bytes already: it began \
                 early and has not waited (griddepcontrol.wait) for this one"
            ));
        }
        if let Some((name, verb)) = find(&self.in_front) {
            return Err(format!(
                "{name}, which is in front of this one in the graph and has not ended, has {verb} these \
                 bytes: this one began early and has not waited (griddepcontrol.wait)"
            ));
        }
        if let Some(kept) = &self.kept {
            lock(kept).add(address, end, kind);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined() {
        let mut set = ByteSet::default();
        for (start, end) in [(10, 20), (30, 40), (20, 22), (50, 60), (12, 14), (28, 30)] {
            set.add(start, end);
        }
        assert_eq!(set.0.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>(), [(10, 22), (28, 40), (50, 60)]);
        for (start, end, expected) in [
            (0, 10, false),
            (0, 11, true),
            (22, 28, false),
            (21, 22, true),
            (40, 50, false),
            (45, 51, true),
            (60, 70, false),
            (0, 100, true),
        ] {
            assert_eq!(set.overlaps(start, end), expected, "{start}..{end}");
        }
        set.add(0, 100);
        assert_eq!(set.0.len(), 1);
    }
}
