//! The names of removed nodes, for error messages.

use std::collections::VecDeque;

use crate::node_name::NodeName;
use crate::state::ids::NodeId;
use cuda_handles::internal::{Lock, LockGuard, Rank};

/// The number of names that are remembered.
const LATEST: usize = 1024;

/// The length, in bytes, at which a name is cut. Errors show less.
const LONGEST: usize = 1024;

/// The names of the latest removed nodes; older ones go by their default name. Its lock is taken
/// last and held briefly.
#[derive(Debug)]
pub(crate) struct RemovedNames(Lock<VecDeque<(NodeId, NodeName)>>);

impl Default for RemovedNames {
    fn default() -> Self {
        Self(Lock::new(Rank::RemovedNames, VecDeque::new()))
    }
}

impl RemovedNames {
    pub(crate) fn note(&self, id: NodeId, mut name: String) {
        if name.len() > LONGEST {
            let end = (LONGEST..=name.len()).find(|end| name.is_char_boundary(*end));
            name.truncate(end.unwrap_or(0));
        }
        if let Some(mut names) = self.names() {
            if names.len() == LATEST {
                names.pop_front();
            }
            names.push_back((id, name.into()));
        }
    }

    /// The name of a removed node, if it is still remembered.
    pub(crate) fn find(&self, id: NodeId) -> Option<NodeName> {
        let names = self.names()?;
        names.iter().rev().find(|(known, _)| *known == id).map(|(_, name)| name.clone())
    }

    /// `None` while another thread holds the lock: in a forked child that thread may not exist.
    fn names(&self) -> Option<LockGuard<'_, VecDeque<(NodeId, NodeName)>>> {
        self.0.try_lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> NodeId {
        NodeId { index: 3, number }
    }

    #[test]
    fn the_latest_names_are_known() {
        let names = RemovedNames::default();
        for number in 0..2000 {
            names.note(id(number), format!("n{number}"));
        }
        assert_eq!(names.find(id(1999)), Some("n1999".into()));
        assert_eq!(names.find(id(976)), Some("n976".into()));
        assert_eq!((names.find(id(975)), names.find(id(2000))), (None, None));
        names.note(id(5000), "漢".repeat(100_000));
        assert!(names.find(id(5000)).is_some_and(|name| name.len() < 2 * LONGEST));
    }
}
