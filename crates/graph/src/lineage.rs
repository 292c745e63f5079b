//! What the nodes of a clone were cloned of.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::place::NodeId;

/// How many graphs back a node is found: clones of clones share what they know, but a line of them without end does not.
pub(crate) const GENERATIONS: usize = 8;

/// From the nodes of a graph to those of a clone of it, or of what it became when it was moved.
#[derive(Debug)]
struct Step {
    /// The number of the hierarchy that the original belongs to.
    source: u64,
    /// By the number of the original node.
    nodes: HashMap<u64, NodeId>,
}

/// What a graph was cloned of, and that in turn; the latest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lineage(SmallVec<[Arc<Step>; 1]>);

impl Lineage {
    /// The lineage of a clone of a graph of hierarchy `source`, which has `before`.
    pub(crate) fn new(source: u64, nodes: HashMap<u64, NodeId>, before: &Self) -> Self {
        let latest = Arc::new(Step { source, nodes });
        Self([latest].into_iter().chain(before.0.iter().cloned()).take(GENERATIONS).collect())
    }

    /// The node that stands for node `number` of hierarchy `source`.
    pub(crate) fn find(&self, source: u64, number: u64) -> Option<NodeId> {
        let mut back = (0..).zip(&self.0).filter(|(_, step)| step.source == source);
        let (generation, first) = back.find_map(|(at, step)| Some((at, *step.nodes.get(&number)?)))?;
        let later = self.0.get(..generation)?;
        later.iter().rev().try_fold(first, |id, step| step.nodes.get(&id.number).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> NodeId {
        NodeId { index: 0, number }
    }

    #[test]
    fn nodes_are_found_through_clones_of_clones() {
        let first = Lineage::new(1, HashMap::from([(10, id(20)), (11, id(21))]), &Lineage::default());
        let second = Lineage::new(2, HashMap::from([(20, id(30))]), &first);
        assert_eq!(first.find(1, 10), Some(id(20)));
        assert_eq!(second.find(2, 20), Some(id(30)));
        assert_eq!(second.find(1, 10), Some(id(30)));
        assert_eq!((second.find(1, 11), second.find(2, 10), second.find(3, 20)), (None, None, None));
        // A clone beside its original: both are of one hierarchy.
        let beside = Lineage::new(1, HashMap::from([(20, id(40))]), &first);
        assert_eq!((beside.find(1, 10), beside.find(1, 20)), (Some(id(40)), Some(id(40))));
    }

    #[test]
    fn a_line_of_clones_does_not_grow_without_end() {
        let mut lineage = Lineage::default();
        for source in 0..1000 {
            lineage = Lineage::new(source, HashMap::from([(0, id(0))]), &lineage);
        }
        assert_eq!(lineage.0.len(), GENERATIONS);
        assert!(lineage.find(999, 0).is_some() && lineage.find(992, 0).is_some());
        assert!(lineage.find(991, 0).is_none());
    }
}
