//! The conditions of a hierarchy.
//!
//! The driver never destroys a condition handle before its graph. Therefore a condition that
//! nothing uses any more is reused for a new condition with the same default. A condition is in use
//! as long as a user has a [`Condition`](crate::Condition), a kernel has its handle, or its
//! conditional node exists.

use std::collections::{BTreeSet, HashMap};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use crate::state::ids::NodeId;
use crate::state::params::ConditionSource;
use crate::toposort::Index;

/// The conditions of a hierarchy, and the kernels that have their handles.
#[derive(Debug)]
pub(crate) struct ConditionTable {
    entries: Vec<ConditionEntry>,
    by_number: HashMap<u64, usize>,
    by_raw: HashMap<u64, usize>,
    latest: u64,
    /// The conditions whose handles a kernel has, by the kernel's index.
    by_kernel: HashMap<Index, SmallVec<[u64; 1]>>,
    /// The same pairs by condition.
    setters: BTreeSet<(u64, Index)>,
    /// Entries, by default, of which a use has ended since they were last examined. All entries
    /// without a use are among them.
    released: HashMap<Option<u32>, BTreeSet<usize>>,
    /// The numbers of conditions whose last handle was dropped. Dropping takes no lock.
    dropped: Receiver<u64>,
    dropping: Sender<u64>,
}

/// A condition handle of the driver, and the condition that has it now.
#[derive(Debug)]
pub(crate) struct ConditionEntry {
    pub(crate) raw: u64,
    /// The number of the condition that has the raw handle now.
    pub(crate) number: u64,
    pub(crate) default: Option<u32>,
    /// The conditional node. It may have been removed.
    pub(crate) node: Option<NodeId>,
    alive: Weak<Handles>,
    /// Other code made it, so the raw handle is never reused here.
    is_foreign: bool,
}

/// Shared by all handles of one condition. As long as one exists, the raw handle is not reused.
#[derive(Debug)]
pub(crate) struct Handles {
    number: u64,
    dropping: Sender<u64>,
}

impl Handles {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        // Fails once the graph is gone, and then nobody needs the number.
        let _gone = self.dropping.send(self.number);
    }
}

impl Default for ConditionTable {
    fn default() -> Self {
        let (dropping, dropped) = channel();
        Self {
            entries: Vec::new(),
            by_number: HashMap::new(),
            by_raw: HashMap::new(),
            latest: 0,
            by_kernel: HashMap::new(),
            setters: BTreeSet::new(),
            released: HashMap::new(),
            dropped,
            dropping,
        }
    }
}

impl ConditionTable {
    /// The value that the handles of the next condition share.
    pub(crate) fn next_handles(&self) -> Arc<Handles> {
        Arc::new(Handles { number: self.latest + 1, dropping: self.dropping.clone() })
    }

    /// Inserts a condition. If its raw handle was used before, it replaces that condition.
    pub(crate) fn insert(&mut self, raw: u64, default: Option<u32>, handles: &Arc<Handles>) {
        let number = handles.number;
        self.latest = self.latest.max(number);
        let alive = Arc::downgrade(handles);
        self.enter(ConditionEntry { raw, number, default, node: None, alive, is_foreign: false });
    }

    fn enter(&mut self, entry: ConditionEntry) {
        let (raw, number) = (entry.raw, entry.number);
        let index = match self.by_raw.get(&raw) {
            Some(&index) => index,
            None => self.entries.len(),
        };
        match self.entries.get_mut(index) {
            Some(left) => {
                self.by_number.remove(&left.number);
                *left = entry;
            }
            None => self.entries.push(entry),
        }
        self.by_raw.insert(raw, index);
        self.by_number.insert(number, index);
    }

    /// Notes a conditional node that other code added, and returns the source of its decision. A
    /// condition with an unknown raw handle was made by other code, and its default is unknown.
    pub(crate) fn note_conditional(&mut self, raw: u64, node: NodeId) -> ConditionSource {
        let known = self.by_raw.get(&raw).and_then(|&index| self.entries.get_mut(index));
        if let Some(known) = known {
            known.node = Some(node);
            return if known.is_foreign {
                ConditionSource::Foreign(known.number)
            } else {
                ConditionSource::Condition(known.number)
            };
        }
        self.latest += 1;
        let (number, node, alive) = (self.latest, Some(node), Weak::new());
        self.enter(ConditionEntry { raw, number, default: None, node, alive, is_foreign: true });
        ConditionSource::Foreign(number)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ConditionEntry> {
        self.entries.iter()
    }

    /// The number of the condition that has a raw handle now.
    pub(crate) fn number_of(&self, raw: u64) -> Option<u64> {
        let entry = self.entries.get(*self.by_raw.get(&raw)?)?;
        Some(entry.number)
    }

    pub(crate) fn find(&self, number: u64) -> Option<&ConditionEntry> {
        self.entries.get(*self.by_number.get(&number)?)
    }

    pub(crate) fn find_mut(&mut self, number: u64) -> Option<&mut ConditionEntry> {
        self.entries.get_mut(*self.by_number.get(&number)?)
    }

    /// A handle of a condition. As long as it exists, the raw handle is not reused.
    pub(crate) fn hold(&mut self, number: u64) -> Option<Arc<Handles>> {
        let dropping = self.dropping.clone();
        let entry = self.find_mut(number)?;
        let handles = entry.alive.upgrade().unwrap_or_else(|| Arc::new(Handles { number, dropping }));
        entry.alive = Arc::downgrade(&handles);
        Some(handles)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether no kernel has a handle.
    #[inline]
    pub(crate) fn are_in_no_kernel(&self) -> bool {
        self.by_kernel.is_empty()
    }

    /// The kernels that have handles.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = Index> {
        self.by_kernel.keys().copied()
    }

    /// The conditions whose handles a kernel has.
    pub(crate) fn of_kernel(&self, kernel: Index) -> &[u64] {
        self.by_kernel.get(&kernel).map_or(&[], SmallVec::as_slice)
    }

    /// The kernels that have the handle of a condition.
    pub(crate) fn setters(&self, number: u64) -> impl Iterator<Item = Index> {
        self.setters.range((number, 0)..=(number, Index::MAX)).map(|(_, kernel)| *kernel)
    }

    /// Replaces the condition handles of a kernel.
    pub(crate) fn set_handles(&mut self, kernel: Index, numbers: SmallVec<[u64; 1]>) {
        self.clear_handles(kernel);
        if !numbers.is_empty() {
            self.setters.extend(numbers.iter().map(|number| (*number, kernel)));
            self.by_kernel.insert(kernel, numbers);
        }
    }

    /// Removes the condition handles of a kernel.
    pub(crate) fn clear_handles(&mut self, kernel: Index) {
        for number in self.by_kernel.remove(&kernel).into_iter().flatten() {
            self.setters.remove(&(number, kernel));
            self.note_release(number);
        }
    }

    /// Notes that a use of a condition has ended: a kernel, the node, or the user's last handle.
    pub(crate) fn note_release(&mut self, number: u64) {
        if let Some(&index) = self.by_number.get(&number)
            && let Some(entry) = self.entries.get(index)
        {
            self.released.entry(entry.default).or_default().insert(index);
        }
    }

    /// The raw handle of a condition with this default that nothing uses any more. `exists` tells
    /// whether a node exists.
    pub(crate) fn reusable(&mut self, default: Option<u32>, exists: impl Fn(NodeId) -> bool) -> Option<u64> {
        while let Ok(number) = self.dropped.try_recv() {
            self.note_release(number);
        }
        // An entry that is still in use comes back when its next use ends.
        while let Some(index) = self.released.get_mut(&default).and_then(BTreeSet::pop_first) {
            if let Some(entry) = self.entries.get(index)
                && !entry.is_foreign
                && entry.alive.strong_count() == 0
                && !entry.node.is_some_and(&exists)
                && self.setters(entry.number).next().is_none()
            {
                return Some(entry.raw);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId { index: 7, number: 7 };

    fn make(conditions: &mut ConditionTable, raw: u64, default: Option<u32>) -> Arc<Handles> {
        let handles = conditions.next_handles();
        conditions.insert(raw, default, &handles);
        handles
    }

    #[test]
    fn a_condition_is_left_over_once_nothing_uses_it() {
        let mut conditions = ConditionTable::default();
        let none = |conditions: &mut ConditionTable| conditions.reusable(Some(3), |_| false).is_none();
        let handles = make(&mut conditions, 50, Some(3));
        let number = handles.number();
        conditions.set_handles(4, [number].into());
        assert!(none(&mut conditions));
        drop(handles);
        assert!(none(&mut conditions));
        assert_eq!((conditions.of_kernel(4), conditions.setters(number).count()), (&[number][..], 1));
        conditions.find_mut(number).unwrap().node = Some(NODE);
        conditions.set_handles(4, SmallVec::new());
        assert!(conditions.are_in_no_kernel());
        assert_eq!(conditions.reusable(Some(3), |id| id == NODE), None);
        conditions.note_release(number);
        assert_eq!(conditions.reusable(None, |_| false), None);
        assert_eq!(conditions.reusable(Some(3), |_| false), Some(50));
        // The raw handle belongs to a condition with another number now.
        let again = make(&mut conditions, 50, Some(3));
        assert!(again.number() > number && conditions.find(number).is_none());
        assert_eq!(conditions.iter().count(), 1);
        assert!(none(&mut conditions));
    }

    #[test]
    fn what_other_code_made_is_never_left_over() {
        let mut conditions = ConditionTable::default();
        let ConditionSource::Foreign(number) = conditions.note_conditional(9, NODE) else {
            panic!("not known")
        };
        assert_eq!(conditions.note_conditional(9, NODE), ConditionSource::Foreign(number));
        conditions.note_release(number);
        assert_eq!(conditions.reusable(None, |_| false), None);
        drop(make(&mut conditions, 10, None));
        assert_eq!(conditions.reusable(None, |_| false), Some(10));
    }
}
