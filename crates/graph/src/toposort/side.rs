//! One of the two searches, and the new labels for what it found.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::label::STEP;
use super::plan::{Plan, Way};
use super::view::{Index, Neighbours, Pair};

/// One of the two searches. Seen backwards the labels are negative, so that either way the nodes
/// found move up.
pub(crate) struct Side {
    way: Way,
    /// The labels that the nodes found have to be above.
    floor: i64,
    /// Nodes up to this label take part.
    reach: i64,
    /// Whether that is more than the range of the edges.
    pub(crate) is_wider: bool,
    /// Where it began.
    starts: Vec<Index>,
    /// The nodes found, with their neighbours once these are known.
    found: HashMap<Index, Vec<Index>>,
    /// Those of which they are not.
    pub(crate) waiting: Vec<Index>,
    /// Neighbours that do not take part, the lowest first. Some may since do.
    beyond: BinaryHeap<Reverse<(i64, Index)>>,
}

impl Side {
    pub(crate) fn new<N: Neighbours>(plan: &Plan<'_, N>, way: Way, group: &[Pair]) -> Self {
        let ends = |&(from, to): &Pair| if way == Way::Forwards { (from, to) } else { (to, from) };
        let floor = group.iter().map(|edge| signed(way, plan.label(ends(edge).0))).max().unwrap_or(0);
        let mut found = HashMap::new();
        let mut starts: Vec<Index> = group.iter().map(|edge| ends(edge).1).collect();
        starts.retain(|start| found.insert(*start, Vec::new()).is_none());
        let (waiting, beyond) = (starts.clone(), BinaryHeap::new());
        Self { way, floor, reach: floor, is_wider: false, starts, found, waiting, beyond }
    }

    fn label<N: Neighbours>(&self, plan: &Plan<'_, N>, node: Index) -> i64 {
        signed(self.way, plan.label(node))
    }

    /// Looks at the neighbours of one node.
    pub(crate) fn look<N: Neighbours>(&mut self, plan: &mut Plan<'_, N>) -> Result<(), N::Error> {
        let Some(node) = self.waiting.pop() else { return Ok(()) };
        let neighbours = plan.neighbours(node, self.way)?;
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
        let mut order = Vec::with_capacity(self.found.len());
        // Whether a node was left, or is on the path.
        let mut left: HashMap<Index, bool> = HashMap::with_capacity(self.found.len());
        for &start in &self.starts {
            if left.contains_key(&start) {
                continue;
            }
            left.insert(start, false);
            let mut path: Vec<(Index, usize)> = vec![(start, 0)];
            while let Some((node, next)) = path.last_mut() {
                let neighbour = self.found.get(node).and_then(|neighbours| neighbours.get(*next)).copied();
                *next += 1;
                match neighbour {
                    None => {
                        order.push(*node);
                        left.insert(*node, true);
                        path.pop();
                    }
                    Some(neighbour) if !self.found.contains_key(&neighbour) => {}
                    Some(neighbour) => match left.get(&neighbour) {
                        Some(true) => {}
                        Some(false) => {
                            let nodes = path.iter().map(|(node, _)| *node);
                            return Err(nodes.skip_while(|node| *node != neighbour).collect());
                        }
                        None => {
                            left.insert(neighbour, false);
                            path.push((neighbour, 0));
                        }
                    },
                }
            }
        }
        order.reverse();
        Ok(order)
    }

    /// A cycle in the direction of its edges, a new one last.
    pub(crate) fn told(&self, mut cycle: Vec<Index>, group: &[Pair]) -> Vec<Index> {
        if self.way == Way::Backwards {
            cycle.reverse();
        }
        let new: HashSet<Pair> = group.iter().copied().collect();
        let next = |place: usize| (place + 1) % cycle.len();
        let last = (0..cycle.len()).find(|&place| new.contains(&(cycle[place], cycle[next(place)])));
        let first = last.map_or(0, next);
        cycle.rotate_left(first);
        cycle
    }

    /// Moves the nodes found above the floor. If there is no room below the neighbours that do not
    /// take part, the next ones do from now on, and the search goes on.
    pub(crate) fn place<N: Neighbours>(&mut self, plan: &mut Plan<'_, N>, order: &[Index]) -> bool {
        while let Some(Reverse((_, node))) = self.beyond.peek()
            && self.found.contains_key(node)
        {
            self.beyond.pop();
        }
        let ceiling = self.beyond.peek().map(|Reverse((label, _))| *label);
        let nodes = order.len() as i64;
        // Where others have to give way, they leave enough room that it does not happen again soon:
        // the distance of that many nodes grows with their number.
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
        let way = self.way;
        self.climb(plan, order, step, |plan, node, label| {
            plan.labels.insert(node, unsigned(way, label));
        });
        true
    }

    /// Goes through the nodes in their order with labels that rise by at least a step; tells those
    /// that have to change, and the last one.
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

    /// Lets nodes take part that are in the way: at least one, and as many again where they lie
    /// close.
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

/// A label as a search sees it.
fn signed(way: Way, label: u64) -> i64 {
    // Labels are below 2^63, by far.
    let label = label as i64;
    if way == Way::Forwards { label } else { -label }
}

fn unsigned(way: Way, label: i64) -> u64 {
    (if way == Way::Forwards { label } else { -label }) as u64
}
