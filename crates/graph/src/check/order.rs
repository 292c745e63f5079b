//! Which nodes come before which, also across graphs in graphs.
//!
//! What is in a node comes before all that the node comes before. So two nodes are compared where
//! both are, or nodes that they are in are, in one graph. If that is one node, they are in
//! different bodies of it, of which one runs.

use std::collections::HashSet;

use super::reachability::{Budget, Reachability, order};
use super::subject::{Subject, Tie};
use crate::toposort::{self, Successors};

/// How two nodes stand to each other; the first stands in front of the second in the [`Order`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relation {
    /// The second waits for the first's end.
    Before,
    /// It does if kernels wait that need not.
    IfWaitedFor,
    /// Only one of the two runs, or one is in the other.
    Apart,
    /// They may run at the same time.
    Beside,
}

/// An order of all nodes that goes along all edges.
#[derive(Debug)]
pub(crate) struct Order<'s> {
    subject: &'s Subject,
    /// Where each item stands.
    pub(crate) places: Vec<u32>,
    /// The order of each graph's items, counted from its first.
    orders: Vec<Vec<u32>>,
    /// The ends of edges that do not order the nodes there, or do so only if kernels wait.
    weak: HashSet<(u32, u32)>,
    /// By graph; made when first asked for.
    reaches: Vec<Option<Reaches>>,
}

/// Paths of one graph.
#[derive(Debug)]
struct Reaches {
    ends: Ends,
    /// If kernels wait where they may; `None` where none may.
    waited: Option<Ends>,
}

/// Which nodes end before others touch memory.
#[derive(Debug)]
enum Ends {
    /// Where all edges wait for the end of a node.
    Plain(Reachability),
    /// Of what happens to nodes, one thing after the other: whatever an edge says, the second node
    /// does not start before the first. So what ends before a kernel starts also ends before those
    /// start that do not wait for its end.
    Apart(Reachability),
}

/// A node starts, touches memory, ends.
const EVENTS: u32 = 3;
const TOUCH: u32 = 1;
const END: u32 = 2;

impl Ends {
    fn of(subject: &Subject, graph: usize, order: &[u32]) -> Self {
        match subject.graphs[graph].edges.iter().all(|(.., tie)| *tie == Tie::Order) {
            true => Self::Plain(Reachability::new(successors(subject, graph), order)),
            false => Self::apart(subject, graph, order, false),
        }
    }

    /// Event by event. If they are `waited` for, the end of a node comes before the touches of one
    /// that may wait for it.
    fn apart(subject: &Subject, graph: usize, order: &[u32], waited: bool) -> Self {
        let inner = &subject.graphs[graph];
        let first = inner.items.start;
        let event = |item: u32, event: u32| EVENTS * (item - first) + event;
        let mut edges = Vec::with_capacity(2 * (inner.items.len() + inner.edges.len()));
        for item in inner.items.clone() {
            edges.extend([(event(item, 0), event(item, TOUCH)), (event(item, TOUCH), event(item, END))]);
        }
        for &(from, to, tie) in &inner.edges {
            edges.push(match tie {
                Tie::Order => (event(from, END), event(to, 0)),
                Tie::IfWaitedFor | Tie::Nothing => (event(from, 0), event(to, 0)),
            });
            if waited && tie == Tie::IfWaitedFor {
                edges.push((event(from, END), event(to, TOUCH)));
            }
        }
        let order: Vec<u32> =
            order.iter().flat_map(|node| (0..EVENTS).map(move |event| EVENTS * node + event)).collect();
        let successors = Successors::new(EVENTS as usize * inner.items.len(), edges.iter().copied());
        Self::Apart(Reachability::new(successors, &order))
    }

    fn leads(&mut self, first: u32, second: u32, budget: &mut Budget) -> Option<bool> {
        match self {
            Self::Plain(reach) => reach.leads(first, second, budget),
            Self::Apart(reach) => reach.leads(EVENTS * first + END, EVENTS * second + TOUCH, budget),
        }
    }
}

fn successors(subject: &Subject, graph: usize) -> Successors {
    let graph = &subject.graphs[graph];
    let first = graph.items.start;
    let edges = graph.edges.iter().map(|(from, to, _)| (from - first, to - first));
    Successors::new(graph.items.len(), edges)
}

/// The items of a cycle in a graph, in its order.
pub(crate) fn cycle(subject: &Subject, graph: usize) -> Option<Vec<u32>> {
    let first = subject.graphs[graph].items.start;
    let cycle = toposort::cycle(&successors(subject, graph))?;
    Some(cycle.into_iter().map(|node| node + first).collect())
}

impl<'s> Order<'s> {
    /// `None` if a graph has a cycle.
    pub(crate) fn of(subject: &'s Subject) -> Option<Self> {
        let graphs = 0..subject.graphs.len();
        let orders: Vec<Vec<u32>> =
            graphs.clone().map(|graph| order(&successors(subject, graph))).collect::<Option<_>>()?;
        let mut places = vec![0; subject.items.len()];
        let mut next = 0;
        let mut path: Vec<(usize, usize)> = if graphs.is_empty() { Vec::new() } else { vec![(0, 0)] };
        while let Some((graph, done)) = path.last_mut() {
            let Some(&node) = orders[*graph].get(*done) else {
                path.pop();
                continue;
            };
            *done += 1;
            let item = subject.graphs[*graph].items.start + node;
            places[item as usize] = next;
            next += 1;
            path.extend(subject.items[item as usize].inside.clone().rev().map(|inner| (inner as usize, 0)));
        }
        let edges = subject.graphs.iter().flat_map(|graph| &graph.edges);
        let weak = edges.filter(|(.., tie)| *tie != Tie::Order).map(|&(from, to, _)| (from, to)).collect();
        Some(Self { subject, places, orders, weak, reaches: graphs.map(|_| None).collect() })
    }

    /// How a node stands to one that is not in front of it; `None` if the budget does not suffice.
    pub(crate) fn relate(&mut self, first: u32, second: u32, budget: &mut Budget) -> Option<Relation> {
        let Some((graph, first, second)) = self.meet(first, second, budget)? else {
            return Some(Relation::Apart);
        };
        let base = self.subject.graphs[graph].items.start;
        let Reaches { ends, waited } = self.reaches(graph);
        if ends.leads(first - base, second - base, budget)? {
            return Some(Relation::Before);
        }
        let may_wait = match waited {
            Some(waited) => waited.leads(first - base, second - base, budget)?,
            None => false,
        };
        Some(if may_wait { Relation::IfWaitedFor } else { Relation::Beside })
    }

    /// Whether edges of any kind lead from one node of a graph to another one of it, or may do so,
    /// as the budget does not suffice to tell.
    pub(crate) fn may_lead(&mut self, from: u32, to: u32, budget: &mut Budget) -> bool {
        if self.places[from as usize] > self.places[to as usize] {
            return false;
        }
        let edges = &self.subject.graphs[self.subject.items[from as usize].graph as usize].edges;
        // Those that say nothing about accesses are edges all the same.
        if budget.take(edges.len() as u64).is_none() || edges.iter().any(|(.., tie)| *tie == Tie::Nothing) {
            return true;
        }
        !matches!(self.relate(from, to, budget), Some(Relation::Beside | Relation::Apart))
    }

    /// The innermost graph that both are in, and the items there that they are or are in; `None`
    /// inside if there are none, or it is one item.
    pub(crate) fn meet(
        &self,
        mut first: u32,
        mut second: u32,
        budget: &mut Budget,
    ) -> Option<Option<(usize, u32, u32)>> {
        let graph = |item: u32| self.subject.items[item as usize].graph as usize;
        let outer = |item: u32| self.subject.graphs[graph(item)].outer;
        let depth = |item: u32| self.subject.graphs[graph(item)].depth;
        loop {
            if first == second {
                return Some(None);
            }
            if graph(first) == graph(second) {
                return Some(Some((graph(first), first, second)));
            }
            budget.step()?;
            let (one, two) = (depth(first), depth(second));
            if one >= two {
                let Some(item) = outer(first) else { return Some(None) };
                first = item;
            }
            if two >= one {
                let Some(item) = outer(second) else { return Some(None) };
                second = item;
            }
        }
    }

    /// Whether there is an edge between two items of a graph that does not order them for certain.
    pub(crate) fn are_linked(&self, first: u32, second: u32) -> bool {
        self.weak.contains(&(first, second))
    }

    /// The items in one graph that two items are, or are in; these themselves if there are none.
    pub(crate) fn ends(&self, first: u32, second: u32) -> (u32, u32) {
        let met = self.meet(first, second, &mut Budget(u64::MAX)).flatten();
        met.map_or((first, second), |(_, first, second)| (first, second))
    }

    fn reaches(&mut self, graph: usize) -> &mut Reaches {
        let (subject, order) = (self.subject, &self.orders[graph]);
        self.reaches[graph].get_or_insert_with(|| {
            let has = |wanted| subject.graphs[graph].edges.iter().any(|(.., tie)| *tie == wanted);
            let waited = has(Tie::IfWaitedFor).then(|| Ends::apart(subject, graph, order, true));
            Reaches { ends: Ends::of(subject, graph, order), waited }
        })
    }
}
