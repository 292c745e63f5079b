//! One of the two searches, and new labels for the nodes it found.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::label::STEP;
use super::neighbours::{Edge, Index, Neighbours};
use super::plan::{Direction, Plan};
use crate::toposort::cycle::{Mark, Marks, depth_first};

/// One of the two searches. The backward search sees labels as negative numbers, so that the nodes
/// found move up in either direction.
pub(crate) struct Search {
    direction: Direction,
    /// The nodes found need labels above this one.
    floor: i64,
    /// Nodes up to this label take part.
    reach: i64,
    /// Whether the search has grown beyond the range of the edges.
    pub(crate) is_wider: bool,
    /// The ends of the edges, where the search begins.
    starts: Vec<Index>,
    /// The nodes found, with their neighbours once these are known.
    found: HashMap<Index, Vec<Index>>,
    /// Nodes found whose neighbours are not known yet.
    pub(crate) waiting: Vec<Index>,
    /// Neighbours that do not take part, the lowest label first. Some may have joined since.
    beyond: BinaryHeap<Reverse<(i64, Index)>>,
}

impl Search {
    pub(crate) fn new<N: Neighbours>(plan: &Plan<'_, N>, direction: Direction, group: &[Edge]) -> Self {
        let ends = |&(from, to): &Edge| match direction {
            Direction::Forwards => (from, to),
            Direction::Backwards => (to, from),
        };
        let floor = group.iter().map(|edge| signed(direction, plan.label(ends(edge).0))).max().unwrap_or(0);
        let mut found = HashMap::new();
        let mut starts: Vec<Index> = group.iter().map(|edge| ends(edge).1).collect();
        starts.retain(|start| found.insert(*start, Vec::new()).is_none());
        let (waiting, beyond) = (starts.clone(), BinaryHeap::new());
        Self { direction, floor, reach: floor, is_wider: false, starts, found, waiting, beyond }
    }

    fn label<N: Neighbours>(&self, plan: &Plan<'_, N>, node: Index) -> i64 {
        signed(self.direction, plan.label(node))
    }

    /// Looks at the neighbours of one node.
    pub(crate) fn look<N: Neighbours>(&mut self, plan: &mut Plan<'_, N>) -> Result<(), N::Error> {
        let Some(node) = self.waiting.pop() else { return Ok(()) };
        let neighbours = plan.neighbours(node, self.direction)?;
        for &neighbour in &neighbours {
            let label = self.label(plan, neighbour);
            if label > self.reach {
                self.beyond.push(Reverse((label, neighbour)));
            } else {
                self.find(neighbour);
            }
        }
        self.found.insert(node, neighbours);
        Ok(())
    }

    fn find(&mut self, node: Index) {
        self.found.entry(node).or_insert_with(|| {
            self.waiting.push(node);
            Vec::new()
        });
    }

    /// The nodes found, each before its neighbours; or a cycle among them.
    pub(crate) fn order(&self) -> Result<Vec<Index>, Vec<Index>> {
        let neighbour = |node, number: usize| self.found.get(&node)?.get(number).copied();
        let mut marks = FoundMarks { found: &self.found, marks: HashMap::with_capacity(self.found.len()) };
        depth_first(self.starts.iter().copied(), neighbour, &mut marks)
    }

    /// A cycle in the direction of its edges, with a new edge from its last node to its first.
    pub(crate) fn forwards(&self, mut cycle: Vec<Index>, group: &[Edge]) -> Vec<Index> {
        match self.direction {
            Direction::Forwards => {}
            Direction::Backwards => cycle.reverse(),
        }
        let new: HashSet<Edge> = group.iter().copied().collect();
        let next = |place: usize| (place + 1) % cycle.len();
        let last = (0..cycle.len()).find(|&place| new.contains(&(cycle[place], cycle[next(place)])));
        let first = last.map_or(0, next);
        cycle.rotate_left(first);
        cycle
    }

    /// Moves the nodes found above the floor. If there is no room below the neighbours that do not
    /// take part, the nearest of these join, the search goes on, and this returns false.
    pub(crate) fn relabel<N: Neighbours>(&mut self, plan: &mut Plan<'_, N>, order: &[Index]) -> bool {
        while let Some(Reverse((_, node))) = self.beyond.peek()
            && self.found.contains_key(node)
        {
            self.beyond.pop();
        }
        let ceiling = self.beyond.peek().map(|Reverse((label, _))| *label);
        let nodes = order.len() as i64;
        // Nodes that had to give way leave more room than needed, so that it does not happen again
        // soon: their distance grows with their number.
        let least = if self.is_wider { nodes.min(STEP) } else { 1 };
        let top = self.climb(plan, order, least, |_, _, _| {});
        let step = match ceiling {
            None => STEP,
            Some(ceiling) if top < ceiling => (least + (ceiling - 1 - top) / (nodes + 1)).min(STEP),
            Some(ceiling) => {
                self.widen(ceiling);
                return false;
            }
        };
        let direction = self.direction;
        self.climb(plan, order, step, |plan, node, label| {
            plan.labels.insert(node, unsigned(direction, label));
        });
        true
    }

    /// Goes through the nodes in their order, with labels that rise by at least a step. Calls
    /// `change` for each node that needs another label; returns the last label.
    fn climb<N: Neighbours>(
        &self,
        plan: &mut Plan<'_, N>,
        order: &[Index],
        step: i64,
        mut change: impl FnMut(&mut Plan<'_, N>, Index, i64),
    ) -> i64 {
        let mut label = self.floor;
        for &node in order {
            let (own, least) = (self.label(plan, node), label + step);
            label = own.max(least);
            if own < least {
                change(plan, node, label);
            }
        }
        label
    }

    /// Lets nodes that are in the way take part: at least one, and as many again as were found
    /// where they lie close together.
    fn widen(&mut self, ceiling: i64) {
        self.is_wider = true;
        self.reach = ceiling + self.found.len() as i64;
        while let Some(&Reverse((label, node))) = self.beyond.peek()
            && label <= self.reach
        {
            self.beyond.pop();
            self.find(node);
        }
    }
}

/// Marks of the nodes found; no other node takes part.
struct FoundMarks<'f> {
    found: &'f HashMap<Index, Vec<Index>>,
    marks: HashMap<Index, Mark>,
}

impl Marks for FoundMarks<'_> {
    fn get(&self, node: Index) -> Mark {
        match self.marks.get(&node) {
            Some(mark) => *mark,
            None if self.found.contains_key(&node) => Mark::New,
            None => Mark::Done,
        }
    }

    fn set(&mut self, node: Index, mark: Mark) {
        self.marks.insert(node, mark);
    }
}

/// A label as a search sees it.
fn signed(direction: Direction, label: u64) -> i64 {
    // Labels are far below 2^63.
    let label = label as i64;
    match direction {
        Direction::Forwards => label,
        Direction::Backwards => -label,
    }
}

fn unsigned(direction: Direction, label: i64) -> u64 {
    (match direction {
        Direction::Forwards => label,
        Direction::Backwards => -label,
    }) as u64
}
