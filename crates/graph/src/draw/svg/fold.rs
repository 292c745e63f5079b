//! Folding: many alike branches become one unit of the layout, and so does the inside of a long
//! chain.
//!
//! **Branches.** A fan of 200 nodes in one row would make a picture of 30 000 units by 300.
//! Branches that leave the same nodes and lead to the same nodes are put into one frame instead, in
//! rows. One edge to the frame stands for an edge to each branch.
//!
//! **Chains.** The layout library takes time quadratic in the boxes that follow each other. So it
//! gets a long chain as one box; the places of the nodes in there are simple.

use std::collections::{BTreeMap, HashMap};

use crate::draw::drawing::{Drawing, DrawnEdgeKind};

/// Fewer branches than this are not folded, however wide they are.
const FEWEST: usize = 6;
/// A chain of more nodes than this is folded.
const LONGEST_CHAIN: usize = 100;

/// A unit that is laid out as one box.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// A node, by its position in the drawing.
    Node(usize),
    Branches(Branches),
    Chain(Chain),
}

/// Nodes one after the other, each with an edge to the next and no other edges. The first and last
/// node of a chain are not among them if they have others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chain {
    /// The nodes, by their positions in the drawing.
    pub(crate) nodes: Vec<usize>,
    /// Whether any edge enters or leaves it.
    pub(crate) has_edges: bool,
}

/// Branches between the same nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Branches {
    /// The branches, each a chain of nodes by their positions in the drawing.
    pub(crate) branches: Vec<Vec<usize>>,
    /// Whether any edge enters or leaves it.
    pub(crate) has_edges: bool,
}

/// An edge between units. It stands for one or more edges of the drawing, all of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UnitEdge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) kind: DrawnEdgeKind,
    /// The nodes at the ends of the first edge that it stands for, by position.
    pub(crate) ends: (usize, usize),
    /// How many edges of the drawing it stands for.
    pub(crate) count: usize,
}

/// A drawing with branches and chains folded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Folded {
    pub(crate) units: Vec<Unit>,
    pub(crate) edges: Vec<UnitEdge>,
    /// The edges within branches and chains: their ends by position, and their kinds.
    pub(crate) inner: HashMap<(usize, usize), DrawnEdgeKind>,
}

/// A drawing's edges by the positions of its nodes, without duplicates and loose ends, in an order
/// that does not depend on the input's.
struct Neighbours<'d> {
    edges: Vec<(usize, usize, &'d DrawnEdgeKind)>,
    into: Vec<Vec<(usize, &'d DrawnEdgeKind)>>,
    out: Vec<Vec<(usize, &'d DrawnEdgeKind)>>,
}

impl<'d> Neighbours<'d> {
    fn of(drawing: &'d Drawing) -> Self {
        let positions: HashMap<u32, usize> =
            drawing.nodes.iter().enumerate().rev().map(|(position, node)| (node.id, position)).collect();
        let position = |id| positions.get(&id).copied();
        let mut edges: Vec<_> = drawing
            .edges
            .iter()
            .filter_map(|edge| Some((position(edge.from)?, position(edge.to)?, &edge.kind)))
            .collect();
        edges.sort();
        edges.dedup();
        let mut into = vec![Vec::new(); drawing.nodes.len()];
        let mut out = into.clone();
        for &(from, to, kind) in &edges {
            out[from].push((to, kind));
            into[to].push((from, kind));
        }
        Self { edges, into, out }
    }

    /// The successor, if it is the only one and has no other predecessor.
    fn next_in_chain(&self, node: usize) -> Option<usize> {
        match *self.out[node].as_slice() {
            [(next, _)] if self.into[next].len() == 1 && next != node => Some(next),
            _ => None,
        }
    }

    fn is_in_chain(&self, node: usize) -> bool {
        match *self.into[node].as_slice() {
            [(before, _)] => self.next_in_chain(before) == Some(node),
            _ => false,
        }
    }

    /// All maximal chains. A cycle is none.
    fn chains(&self) -> Vec<Vec<usize>> {
        let heads = (0..self.out.len()).filter(|node| !self.is_in_chain(*node));
        heads
            .map(|head| core::iter::successors(Some(head), |node| self.next_in_chain(*node)).collect())
            .collect()
    }

    /// The inside of a chain, if it is long.
    fn chain(&self, chain: &[usize]) -> Option<Chain> {
        let (head, tail) = (*chain.first()?, *chain.last()?);
        if chain.len() <= LONGEST_CHAIN {
            return None;
        }
        let (has_before, has_after) = (!self.into[head].is_empty(), !self.out[tail].is_empty());
        let nodes = chain.get(usize::from(has_before)..chain.len() - usize::from(has_after))?;
        Some(Chain { nodes: nodes.to_vec(), has_edges: has_before || has_after })
    }
}

/// Folds branches that would take more than `widest` side by side, and other long chains. `width`
/// returns the width of a node with the gap to the next.
pub(crate) fn fold(drawing: &Drawing, width: impl Fn(usize) -> f64, widest: f64) -> Folded {
    let neighbours = Neighbours::of(drawing);
    let mut alike: BTreeMap<_, Vec<Vec<usize>>> = BTreeMap::new();
    for chain in neighbours.chains() {
        if let (Some(&head), Some(&tail)) = (chain.first(), chain.last()) {
            alike.entry((&neighbours.into[head], &neighbours.out[tail])).or_default().push(chain);
        }
    }
    let mut block_of: Vec<Option<usize>> = vec![None; drawing.nodes.len()];
    let mut groups = Vec::new();
    for ((into, out), branches) in alike {
        let wide = |branch: &Vec<usize>| branch.iter().map(|node| width(*node)).fold(0.0, f64::max);
        if branches.len() < FEWEST || branches.iter().map(wide).sum::<f64>() <= widest {
            for chain in branches.iter().filter_map(|chain| neighbours.chain(chain)) {
                chain.nodes.iter().for_each(|node| block_of[*node] = Some(groups.len()));
                groups.push(Some(Unit::Chain(chain)));
            }
            continue;
        }
        branches.iter().flatten().for_each(|node| block_of[*node] = Some(groups.len()));
        groups.push(Some(Unit::Branches(Branches {
            branches,
            has_edges: !(into.is_empty() && out.is_empty()),
        })));
    }
    Folded::from_blocks(&neighbours, &block_of, groups)
}

impl Folded {
    /// The units in the order of their first nodes, and the edges between them.
    fn from_blocks(
        neighbours: &Neighbours<'_>,
        block_of: &[Option<usize>],
        mut groups: Vec<Option<Unit>>,
    ) -> Self {
        let mut folded = Self::default();
        let mut units_of_blocks = vec![0; groups.len()];
        let mut unit_of = Vec::with_capacity(block_of.len());
        for (node, group) in block_of.iter().enumerate() {
            let Some(group) = *group else {
                unit_of.push(folded.units.len());
                folded.units.push(Unit::Node(node));
                continue;
            };
            if let Some(first_seen) = groups[group].take() {
                units_of_blocks[group] = folded.units.len();
                folded.units.push(first_seen);
            }
            unit_of.push(units_of_blocks[group]);
        }
        let mut places: HashMap<(usize, usize, &DrawnEdgeKind), usize> = HashMap::new();
        for &(from, to, kind) in &neighbours.edges {
            let ends = (unit_of[from], unit_of[to]);
            if ends.0 == ends.1 && block_of[from].is_some() {
                folded.inner.insert((from, to), kind.clone());
                continue;
            }
            let place = *places.entry((ends.0, ends.1, kind)).or_insert(folded.edges.len());
            match folded.edges.get_mut(place) {
                Some(edge) => edge.count += 1,
                None => folded.edges.push(UnitEdge {
                    from: ends.0,
                    to: ends.1,
                    kind: kind.clone(),
                    ends: (from, to),
                    count: 1,
                }),
            }
        }
        folded
    }
}
