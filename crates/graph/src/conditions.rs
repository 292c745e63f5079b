//! What a hierarchy of graphs knows of its conditions.

use std::sync::{Arc, Weak};

use crate::detail::By;
use crate::place::NodeId;

/// The conditions of a hierarchy.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) entries: Vec<Entry>,
    latest: u64,
}

/// What the driver has for a condition, and who uses it now.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) raw: u64,
    /// Of the condition that has it now.
    pub(crate) number: u64,
    pub(crate) default: Option<u32>,
    /// The conditional node, if it is still there.
    pub(crate) node: Option<NodeId>,
    pub(crate) there: Weak<()>,
    /// Other code made it: nobody here uses what the driver has for it again.
    pub(crate) is_foreign: bool,
}

impl Conditions {
    /// Enters a condition; one that was left over has its entry.
    pub(crate) fn insert(&mut self, raw: u64, default: Option<u32>, there: &Arc<()>) -> u64 {
        self.latest += 1;
        let (number, there) = (self.latest, Arc::downgrade(there));
        let entry = Entry { raw, number, default, node: None, there, is_foreign: false };
        match self.entries.iter_mut().find(|entry| entry.raw == raw) {
            Some(left) => *left = entry,
            None => self.entries.push(entry),
        }
        number
    }

    /// The condition with this raw value, for the node that goes by it, which other code made. If it is not known, neither is its default, and other code made it as well.
    pub(crate) fn meet(&mut self, raw: u64, node: NodeId) -> By {
        if let Some(known) = self.entries.iter_mut().find(|entry| entry.raw == raw) {
            known.node = Some(node);
            return if known.is_foreign { By::Foreign(known.number) } else { By::Condition(known.number) };
        }
        self.latest += 1;
        let (number, node, there) = (self.latest, Some(node), Weak::new());
        self.entries.push(Entry { raw, number, default: None, node, there, is_foreign: true });
        By::Foreign(number)
    }

    pub(crate) fn find(&self, number: u64) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.number == number)
    }

    pub(crate) fn find_mut(&mut self, number: u64) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.number == number)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
