//! Lineage: which node of a clone is the counterpart of which node of the original.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::state::ids::{NodeId, SubgraphId};

/// The number of generations through which a counterpart is found. Clones of clones share their
/// steps; the limit bounds a long line of clones.
pub(crate) const GENERATIONS: usize = 8;

/// The counterparts of a graph's nodes in a clone of it, or in the hierarchy that it was moved
/// into.
#[derive(Debug)]
enum Step {
    /// Listed one by one.
    Listed {
        /// The number of the original's hierarchy.
        source: u64,
        nodes: HashMap<NodeId, NodeId>,
    },
    /// The whole state of a hierarchy was taken over. The graph was one of its graphs, and is
    /// `subgraph` now.
    Whole { moved: Moved, subgraph: SubgraphId },
}

/// A hierarchy that was moved into another one, which has taken over its state.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    /// The number of the hierarchy.
    source: u64,
    /// The ids that changed then, and whenever the other hierarchy was moved itself.
    renamed: SmallVec<[Arc<Renamed>; 1]>,
}

/// The few nodes and graphs whose ids changed when their state became that of another hierarchy.
#[derive(Debug, Default)]
pub(crate) struct Renamed {
    pub(crate) nodes: HashMap<NodeId, NodeId>,
    pub(crate) subgraphs: HashMap<SubgraphId, SubgraphId>,
    /// Every node with an index below `records`, and every graph with an index below `graphs`, got
    /// another id. If such a node was removed before, its old id may belong to another node now.
    pub(crate) records: usize,
    pub(crate) graphs: usize,
}

impl Renamed {
    /// The new id of a node; [`NodeId::NONE`] if the node was removed before.
    pub(crate) fn node(&self, node: NodeId) -> NodeId {
        match self.nodes.get(&node) {
            Some(renamed) => *renamed,
            None if (node.index as usize) < self.records => NodeId::NONE,
            None => node,
        }
    }

    /// The new id of a graph; `None` if the graph had gone before.
    fn subgraph(&self, subgraph: SubgraphId) -> Option<SubgraphId> {
        match self.subgraphs.get(&subgraph) {
            Some(renamed) => Some(*renamed),
            None if subgraph.index().is_none_or(|index| (index as usize) < self.graphs) => None,
            None => Some(subgraph),
        }
    }
}

impl Moved {
    pub(crate) fn new(source: u64, renamed: Arc<Renamed>) -> Self {
        Self { source, renamed: [renamed].into() }
    }

    /// Notes that the hierarchy was moved once more, as a part of another. Returns false if the
    /// limit is exceeded.
    pub(crate) fn move_on(&mut self, renamed: &Arc<Renamed>) -> bool {
        self.renamed.push(Arc::clone(renamed));
        self.renamed.len() <= GENERATIONS
    }

    /// The new id of a node, if its graph is the one at `here` now.
    fn find(&self, here: SubgraphId, subgraph: SubgraphId, node: NodeId) -> Option<NodeId> {
        let mut renamed = self.renamed.iter();
        let (subgraph, node) = renamed.try_fold((subgraph, node), |(subgraph, node), renamed| {
            Some((renamed.subgraph(subgraph)?, renamed.node(node)))
        })?;
        (subgraph == here).then_some(node)
    }
}

impl Step {
    fn source(&self) -> u64 {
        match self {
            Self::Listed { source, .. } => *source,
            Self::Whole { moved, .. } => moved.source,
        }
    }

    fn find(&self, subgraph: SubgraphId, node: NodeId) -> Option<NodeId> {
        match self {
            Self::Listed { nodes, .. } => nodes.get(&node).copied(),
            Self::Whole { moved, subgraph: here } => moved.find(*here, subgraph, node),
        }
    }

    /// The counterpart of a node of the previous graph in the line.
    fn follow(&self, node: NodeId) -> Option<NodeId> {
        match self {
            Self::Listed { nodes, .. } => nodes.get(&node).copied(),
            // The graph itself was moved, and its lineage uses the new ids.
            Self::Whole { .. } => Some(node),
        }
    }
}

/// The originals of a graph and their originals in turn; the latest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lineage(SmallVec<[Arc<Step>; 1]>);

impl Lineage {
    /// The lineage of a clone. Its original is a graph of hierarchy `source` with the lineage
    /// `before`.
    pub(crate) fn new(source: u64, nodes: HashMap<NodeId, NodeId>, before: &Self) -> Self {
        let latest = Arc::new(Step::Listed { source, nodes });
        let mut generations = 1;
        let recent = before.0.iter().take_while(|step| {
            generations += usize::from(matches!(***step, Step::Listed { .. }));
            generations <= GENERATIONS
        });
        Self([latest].into_iter().chain(recent.cloned()).collect())
    }

    /// The lineage of a graph in a hierarchy that has taken over others.
    pub(crate) fn within(&self, subgraph: SubgraphId, moved: &[Moved]) -> Self {
        let whole = moved.iter().map(|moved| Arc::new(Step::Whole { moved: moved.clone(), subgraph }));
        Self(whole.chain(self.0.iter().cloned()).collect())
    }

    /// Replaces the ids of the graph's own nodes.
    pub(crate) fn rename(&mut self, renamed: &Renamed) {
        if let Some(latest) = self.0.first_mut()
            && let Step::Listed { source, nodes } = &**latest
        {
            let nodes = nodes.iter().map(|(original, id)| (*original, renamed.node(*id))).collect();
            *latest = Arc::new(Step::Listed { source: *source, nodes });
        }
    }

    /// The counterpart of a node of the graph at `subgraph` of hierarchy `source`.
    pub(crate) fn find(&self, source: u64, subgraph: SubgraphId, node: NodeId) -> Option<NodeId> {
        let mut back = (0..).zip(&self.0).filter(|(_, step)| step.source() == source);
        let (generation, first) = back.find_map(|(at, step)| Some((at, step.find(subgraph, node)?)))?;
        let later = self.0.get(..generation)?;
        later.iter().rev().try_fold(first, |id, step| step.follow(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> NodeId {
        NodeId { index: 0, number }
    }

    fn step(source: u64, nodes: &[(u64, u64)], before: &Lineage) -> Lineage {
        let nodes = nodes.iter().map(|&(original, clone)| (id(original), id(clone)));
        Lineage::new(source, nodes.collect(), before)
    }

    fn find(lineage: &Lineage, source: u64, node: u64) -> Option<u64> {
        lineage.find(source, SubgraphId::ROOT, id(node)).map(|id| id.number)
    }

    #[test]
    fn nodes_are_found_through_clones_of_clones() {
        let first = step(1, &[(10, 20), (11, 21)], &Lineage::default());
        let second = step(2, &[(20, 30)], &first);
        assert_eq!(find(&first, 1, 10), Some(20));
        assert_eq!(find(&second, 2, 20), Some(30));
        assert_eq!(find(&second, 1, 10), Some(30));
        assert_eq!((find(&second, 1, 11), find(&second, 2, 10), find(&second, 3, 20)), (None, None, None));
        // A clone beside its original: both are in one hierarchy.
        let beside = step(1, &[(20, 40)], &first);
        assert_eq!((find(&beside, 1, 10), find(&beside, 1, 20)), (Some(40), Some(40)));
    }

    #[test]
    fn a_line_of_clones_does_not_grow_without_end() {
        let mut lineage = Lineage::default();
        for source in 0..1000 {
            lineage = step(source, &[(0, 0)], &lineage);
        }
        assert_eq!(lineage.0.len(), GENERATIONS);
        assert!(find(&lineage, 999, 0).is_some() && find(&lineage, 992, 0).is_some());
        assert!(find(&lineage, 991, 0).is_none());
    }

    #[test]
    fn nodes_are_found_through_tables_that_were_taken_over() {
        let (inner, outer) = (SubgraphId::embedded(3, 7), SubgraphId::embedded(4, 9));
        let rename = |nodes: &[(u64, u64)], subgraph| {
            let nodes = nodes.iter().map(|&(before, now)| (id(before), id(now))).collect();
            Arc::new(Renamed {
                nodes,
                subgraphs: HashMap::from([(SubgraphId::ROOT, subgraph)]),
                ..Renamed::default()
            })
        };
        // A clone of hierarchy 1 in hierarchy 2, which is moved into 3, and that into 4.
        let mut lineage = step(1, &[(10, 20), (11, 21)], &Lineage::default());
        let first = rename(&[(20, 50)], inner);
        lineage.rename(&first);
        let second = rename(&[(50, 60)], outer);
        lineage.rename(&second);
        let mut moved = vec![Moved::new(2, first), Moved::new(3, second.clone())];
        assert!(moved[0].move_on(&second));
        let here = lineage.within(inner, &moved);
        assert_eq!((find(&here, 2, 20), find(&here, 2, 21)), (Some(60), Some(21)));
        assert_eq!((find(&here, 1, 10), find(&here, 1, 11)), (Some(60), Some(21)));
        // The root of 3 is another graph.
        assert_eq!(find(&here, 3, 1), None);
        assert_eq!(find(&lineage.within(outer, &moved), 3, 1), Some(1));
        let clone = step(4, &[(60, 70)], &here);
        assert_eq!(
            (find(&clone, 1, 10), find(&clone, 2, 20), find(&clone, 2, 21)),
            (Some(70), Some(70), None)
        );
        for _ in 2..GENERATIONS {
            assert!(moved[0].move_on(&rename(&[], outer)));
        }
        assert!(!moved[0].move_on(&rename(&[], outer)));
    }
}
