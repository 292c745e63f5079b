//! The nodes of two graphs in pairs, as a driver pairs them for an update. Plain data.
//!
//! A driver begins at the **sinks**, the nodes that no other waits for: it pairs those of one graph
//! with those of the other in the order in which they were added. Then it pairs what each pair
//! waits for, in the order in which the edges were added. The graphs in a pair of nodes are paired
//! in the same way. Names, parameters and addresses do not matter.

use core::ops::Range;

use cuda_sys::CUgraphNodeType;
use smallvec::SmallVec;

use crate::edge_kind::EdgeKind;
use crate::state::ids::NodeId;

/// The nodes and edges of a graph and of the graphs in its nodes.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// The graph itself first.
    pub(crate) graphs: Vec<GraphShape>,
}

/// The nodes of one graph, in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct GraphShape {
    pub(crate) nodes: Vec<NodeShape>,
}

/// A node, what it waits for, and what is in it.
#[derive(Debug)]
pub(crate) struct NodeShape {
    pub(crate) id: NodeId,
    pub(crate) kind: CUgraphNodeType,
    /// The nodes that it waits for, by their places in the graph, in the order in which the edges
    /// were added.
    pub(crate) waits_for: SmallVec<[(u32, EdgeKind); 2]>,
    /// The graphs in the node, by their numbers in the shape.
    pub(crate) inside: Range<usize>,
}

/// A pair of nodes: the old one and the new one.
pub(crate) type Pair = (NodeId, NodeId);

/// The pairs of nodes of two graphs, and the places where the graphs differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairing {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) differences: Vec<Difference>,
}

/// A place where two graphs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// Two graphs have different numbers of nodes, or of sinks.
    Count {
        /// The nodes that the graphs are in; `None` for the graphs themselves.
        within: Option<Pair>,
        what: Counted,
        /// The old and the new number.
        numbers: (usize, usize),
    },
    /// The nodes are of different kinds.
    Kind(Pair),
    /// The nodes wait for different numbers of nodes.
    Waits(Pair, (usize, usize)),
    /// The edges that come from these nodes are of different kinds.
    Edge { from: Pair, to: Pair, kinds: (EdgeKind, EdgeKind) },
    /// The nodes wait for the same number of nodes, but not for counterparts: the new one waits for
    /// `from`, which is the counterpart of another node.
    Crossed { from: NodeId, to: Pair },
    /// The nodes have different numbers of graphs in them.
    Bodies(Pair, (usize, usize)),
}

/// Something that graphs have a number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Nodes,
    Sinks,
}

/// Pairs the nodes of two graphs. Takes time in proportion to their nodes and edges. Where the
/// graphs differ, nodes beyond stay without a pair.
pub(crate) fn pair(old: &Shape, new: &Shape) -> Pairing {
    let mut found = Pairing::default();
    // A list, since graphs may be nested deeper than the stack allows.
    let mut waiting = vec![(0, 0, None)];
    while let Some((one, other, within)) = waiting.pop() {
        if let (Some(old), Some(new)) = (old.graphs.get(one), new.graphs.get(other)) {
            Level::new(old, new, &mut found, &mut waiting).pair(within);
        }
    }
    found
}

/// Graphs in two nodes, by their numbers, with the nodes.
type Inside = (usize, usize, Option<Pair>);

/// Two graphs whose nodes are being paired.
struct Level<'s> {
    old: &'s [NodeShape],
    new: &'s [NodeShape],
    found: &'s mut Pairing,
    waiting: &'s mut Vec<Inside>,
    /// The place of each old node's counterpart, and the reverse.
    of_old: Vec<Option<u32>>,
    of_new: Vec<Option<u32>>,
    /// Pairs, by their places, in the order in which they were found.
    queue: Vec<(u32, u32)>,
}

impl<'s> Level<'s> {
    fn new(
        old: &'s GraphShape,
        new: &'s GraphShape,
        found: &'s mut Pairing,
        waiting: &'s mut Vec<Inside>,
    ) -> Self {
        let (old, new) = (&old.nodes[..], &new.nodes[..]);
        let (of_old, of_new) = (vec![None; old.len()], vec![None; new.len()]);
        Self { old, new, found, waiting, of_old, of_new, queue: Vec::with_capacity(old.len()) }
    }

    fn pair(mut self, within: Option<Pair>) {
        let (old, new) = (sinks(self.old), sinks(self.new));
        let numbers =
            [(Counted::Nodes, (self.old.len(), self.new.len())), (Counted::Sinks, (old.len(), new.len()))];
        if let Some((what, numbers)) = numbers.into_iter().find(|(_, (old, new))| old != new) {
            self.found.differences.push(Difference::Count { within, what, numbers });
            return;
        }
        old.into_iter().zip(new).for_each(|(old, new)| self.add(old, new));
        let mut at = 0;
        while let Some(&(old, new)) = self.queue.get(at) {
            at += 1;
            if let (Some(old), Some(new)) = (self.old.get(old as usize), self.new.get(new as usize)) {
                self.follow(old, new);
            }
        }
    }

    /// Pairs what two nodes wait for.
    fn follow(&mut self, old: &NodeShape, new: &NodeShape) {
        let to = (old.id, new.id);
        let (before, after) = (&old.waits_for, &new.waits_for);
        if before.len() != after.len() {
            self.found.differences.push(Difference::Waits(to, (before.len(), after.len())));
            return;
        }
        for (&(old, old_kind), &(new, new_kind)) in before.iter().zip(after) {
            let counterpart = self.of_old.get(old as usize).copied().flatten();
            let is_taken = self.of_new.get(new as usize).copied().flatten().is_some();
            let (Some(from_old), Some(from_new)) = (self.id(self.old, old), self.id(self.new, new)) else {
                continue;
            };
            match counterpart {
                None if !is_taken => self.add(old, new),
                Some(known) if known == new => {}
                None | Some(_) => {
                    self.found.differences.push(Difference::Crossed { from: from_new, to });
                    continue;
                }
            }
            if old_kind.plain() != new_kind.plain() {
                let (from, kinds) = ((from_old, from_new), (old_kind, new_kind));
                self.found.differences.push(Difference::Edge { from, to, kinds });
            }
        }
    }

    fn id(&self, nodes: &[NodeShape], place: u32) -> Option<NodeId> {
        nodes.get(place as usize).map(|node| node.id)
    }

    /// Notes a pair.
    fn add(&mut self, old: u32, new: u32) {
        let (Some(one), Some(other)) = (self.old.get(old as usize), self.new.get(new as usize)) else {
            return;
        };
        if let (Some(of_old), Some(of_new)) =
            (self.of_old.get_mut(old as usize), self.of_new.get_mut(new as usize))
        {
            (*of_old, *of_new) = (Some(new), Some(old));
        }
        let pair = (one.id, other.id);
        self.found.pairs.push(pair);
        self.queue.push((old, new));
        if one.kind != other.kind {
            self.found.differences.push(Difference::Kind(pair));
        } else if one.inside.len() != other.inside.len() {
            let numbers = (one.inside.len(), other.inside.len());
            self.found.differences.push(Difference::Bodies(pair, numbers));
        } else {
            let inside = one.inside.clone().zip(other.inside.clone());
            self.waiting.extend(inside.rev().map(|(old, new)| (old, new, Some(pair))));
        }
    }
}

/// The places of the nodes that no other waits for.
fn sinks(nodes: &[NodeShape]) -> Vec<u32> {
    let mut is_awaited = vec![false; nodes.len()];
    for &(from, _) in nodes.iter().flat_map(|node| &node.waits_for) {
        if let Some(is_awaited) = is_awaited.get_mut(from as usize) {
            *is_awaited = true;
        }
    }
    (0..).zip(is_awaited).filter(|(_, is_awaited)| !is_awaited).map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: CUgraphNodeType = CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
    const CHILD: CUgraphNodeType = CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH;

    fn id(number: u64) -> NodeId {
        NodeId { index: number as u32, number }
    }

    /// A graph of nodes, each with the places of those that it waits for.
    fn graph(nodes: &[&[u32]]) -> GraphShape {
        let node = |(number, waits_for): (u64, &&[u32])| NodeShape {
            id: id(number),
            kind: KERNEL,
            waits_for: waits_for.iter().map(|from| (*from, EdgeKind::Full)).collect(),
            inside: 0..0,
        };
        GraphShape { nodes: (0..).zip(nodes).map(node).collect() }
    }

    fn shape(nodes: &[&[u32]]) -> Shape {
        Shape { graphs: vec![graph(nodes)] }
    }

    fn pairs(pairing: &Pairing) -> Vec<(u64, u64)> {
        let mut pairs: Vec<_> = pairing.pairs.iter().map(|(old, new)| (old.number, new.number)).collect();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn a_chain_is_paired_with_one_that_was_added_backwards() {
        let found = pair(&shape(&[&[], &[0], &[1]]), &shape(&[&[1], &[2], &[]]));
        assert_eq!((pairs(&found), found.differences), (vec![(0, 2), (1, 1), (2, 0)], vec![]));
    }

    #[test]
    fn the_order_of_edges_decides_between_nodes_that_one_node_waits_for() {
        let found = pair(&shape(&[&[], &[], &[0, 1]]), &shape(&[&[], &[], &[1, 0]]));
        assert_eq!((pairs(&found), found.differences), (vec![(0, 1), (1, 0), (2, 2)], vec![]));
    }

    #[test]
    fn sinks_are_paired_in_the_order_of_creation() {
        // A chain of two and a node alone; the other way round the chain does not fit.
        let (old, new) = (shape(&[&[], &[0], &[]]), shape(&[&[], &[], &[1]]));
        let found = pair(&old, &new);
        assert_eq!(
            found.differences,
            [Difference::Waits((id(1), id(0)), (1, 0)), Difference::Waits((id(2), id(2)), (0, 1))]
        );
    }

    #[test]
    fn differences_are_found_where_they_are() {
        let mut new = shape(&[&[], &[0], &[1]]);
        new.graphs[0].nodes[1].kind = CHILD;
        let found = pair(&shape(&[&[], &[0], &[1]]), &new);
        assert_eq!((found.pairs.len(), found.differences), (3, vec![Difference::Kind((id(1), id(1)))]));
        let mut new = shape(&[&[], &[0], &[1]]);
        new.graphs[0].nodes[1].waits_for[0].1 = EdgeKind::Programmatic;
        let found = pair(&shape(&[&[], &[0], &[1]]), &new);
        let kinds = (EdgeKind::Full, EdgeKind::Programmatic);
        let edge = Difference::Edge { from: (id(0), id(0)), to: (id(1), id(1)), kinds };
        assert_eq!((found.pairs.len(), found.differences), (3, vec![edge]));
        // A node that two others wait for, and two nodes that one waits for each.
        let found = pair(&shape(&[&[], &[0], &[0], &[]]), &shape(&[&[], &[], &[0], &[1]]));
        assert!(matches!(
            found.differences[0],
            Difference::Count { what: Counted::Sinks, numbers: (3, 2), .. }
        ));
        let found = pair(&shape(&[&[], &[], &[0], &[0, 1]]), &shape(&[&[], &[], &[1], &[0, 1]]));
        assert_eq!(
            found.differences,
            [
                Difference::Crossed { from: id(0), to: (id(3), id(3)) },
                Difference::Crossed { from: id(1), to: (id(3), id(3)) }
            ]
        );
    }

    #[test]
    fn graphs_in_nodes_are_paired_with_their_nodes() {
        let nested = |inner: &[&[u32]]| {
            let mut shape = shape(&[&[], &[0]]);
            let node = &mut shape.graphs[0].nodes[1];
            (node.kind, node.inside) = (CHILD, 1..2);
            shape.graphs.push(graph(inner));
            shape
        };
        let found = pair(&nested(&[&[], &[0]]), &nested(&[&[1], &[]]));
        assert_eq!((pairs(&found), found.differences), (vec![(0, 0), (0, 1), (1, 0), (1, 1)], vec![]));
        let found = pair(&nested(&[&[]]), &nested(&[]));
        let within = Some((id(1), id(1)));
        assert_eq!(found.differences, [Difference::Count { within, what: Counted::Nodes, numbers: (1, 0) }]);
    }

    #[test]
    fn a_long_chain_of_nested_graphs_needs_no_stack() {
        let depth = 100_000;
        let deep = || {
            let level = |number| {
                let mut graph = graph(&[&[]]);
                if number < depth {
                    (graph.nodes[0].kind, graph.nodes[0].inside) = (CHILD, number..number + 1);
                }
                graph
            };
            Shape { graphs: (1..=depth).map(level).collect() }
        };
        assert_eq!(pair(&deep(), &deep()).pairs.len(), depth);
    }
}
