//! How two nodes relate, also across graphs in graphs. The [module page](super) has the
//! definitions.
//!
//! Two nodes are compared in the innermost graph that both are in, by themselves or by nodes around
//! them. If one node is around both, they are in different bodies of it, of which one runs.

use std::collections::HashSet;

use super::model::{EdgeOrder, Model};
use super::reachability::{Budget, Reachability, order};
use crate::toposort::{self, Successors};

/// How two nodes relate; the first comes before the second in the [`NodeOrder`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relation {
    /// The first ends before the second accesses memory.
    Before,
    /// It does if kernels wait that need not.
    IfWaitedFor,
    /// Only one of the two runs, or one holds the other.
    Exclusive,
    /// They may run concurrently.
    Concurrent,
}

/// Where two nodes meet.
enum Meeting {
    /// In the innermost graph that both are in, with the two nodes of it that they are or are in.
    InGraph(usize, u32, u32),
    /// Nowhere, since one node of a graph is or holds both; see [`Relation::Exclusive`].
    Exclusive,
}

/// A topological order of all nodes, and answers about pairs of them.
#[derive(Debug)]
pub(crate) struct NodeOrder<'s> {
    model: &'s Model,
    /// The place of each node in the order.
    pub(crate) places: Vec<u32>,
    /// A topological order of each graph's nodes, counted from its first.
    orders: Vec<Vec<u32>>,
    /// The ends of edges that do not order their nodes, or do so only if kernels wait.
    weak: HashSet<(u32, u32)>,
    /// By graph; computed on first use.
    paths: Vec<Option<GraphPaths>>,
}

/// Paths of one graph.
#[derive(Debug)]
struct GraphPaths {
    ends: Precedence,
    /// The same if kernels wait wherever they may; `None` if none may.
    waited: Option<Precedence>,
}

/// Which nodes end before others access memory.
#[derive(Debug)]
enum Precedence {
    /// By nodes, if all edges are full.
    ByNodes(Reachability),
    /// By the three events of each node: over an edge of any kind, the second node does not start
    /// before the first. So what ends before a kernel starts also ends before those start that do
    /// not wait for its end.
    ByEvents(Reachability),
}

/// The events of a node: it starts, it accesses memory, it ends.
const EVENTS: u32 = 3;
const START: u32 = 0;
const ACCESS: u32 = 1;
const END: u32 = 2;

impl Precedence {
    fn of(model: &Model, graph: usize, order: &[u32]) -> Self {
        match model.graphs[graph].edges.iter().all(|(.., ordering)| *ordering == EdgeOrder::Always) {
            true => Self::ByNodes(Reachability::new(successors(model, graph), order)),
            false => Self::by_events(model, graph, order, false),
        }
    }

    /// The graph of events. With `waited`, the end of a node also comes before the accesses of a
    /// node that may wait for it.
    fn by_events(model: &Model, graph: usize, order: &[u32], waited: bool) -> Self {
        let inner = &model.graphs[graph];
        let first = inner.nodes.start;
        let event = |node: u32, event: u32| EVENTS * (node - first) + event;
        let mut edges = Vec::with_capacity(2 * (inner.nodes.len() + inner.edges.len()));
        for node in inner.nodes.clone() {
            edges
                .extend([(event(node, START), event(node, ACCESS)), (event(node, ACCESS), event(node, END))]);
        }
        for &(from, to, ordering) in &inner.edges {
            edges.push(match ordering {
                EdgeOrder::Always => (event(from, END), event(to, START)),
                EdgeOrder::IfWaitedFor | EdgeOrder::Never => (event(from, START), event(to, START)),
            });
            if waited && ordering == EdgeOrder::IfWaitedFor {
                edges.push((event(from, END), event(to, ACCESS)));
            }
        }
        let order: Vec<u32> =
            order.iter().flat_map(|node| (0..EVENTS).map(move |event| EVENTS * node + event)).collect();
        let successors = Successors::new(EVENTS as usize * inner.nodes.len(), edges.iter().copied());
        Self::ByEvents(Reachability::new(successors, &order))
    }

    fn leads(&mut self, first: u32, second: u32, budget: &mut Budget) -> Option<bool> {
        match self {
            Self::ByNodes(reach) => reach.leads(first, second, budget),
            Self::ByEvents(reach) => reach.leads(EVENTS * first + END, EVENTS * second + ACCESS, budget),
        }
    }
}

fn successors(model: &Model, graph: usize) -> Successors {
    let graph = &model.graphs[graph];
    let first = graph.nodes.start;
    let edges = graph.edges.iter().map(|(from, to, _)| (from - first, to - first));
    Successors::new(graph.nodes.len(), edges)
}

/// The nodes of a cycle in a graph, in its direction.
pub(crate) fn cycle(model: &Model, graph: usize) -> Option<Vec<u32>> {
    let first = model.graphs[graph].nodes.start;
    let cycle = toposort::cycle(&successors(model, graph))?;
    Some(cycle.into_iter().map(|node| node + first).collect())
}

impl<'s> NodeOrder<'s> {
    /// `None` if a graph has a cycle.
    pub(crate) fn of(model: &'s Model) -> Option<Self> {
        let graphs = 0..model.graphs.len();
        let orders: Vec<Vec<u32>> =
            graphs.clone().map(|graph| order(&successors(model, graph))).collect::<Option<_>>()?;
        let mut places = vec![0; model.nodes.len()];
        let mut next = 0;
        let mut path: Vec<(usize, usize)> = if graphs.is_empty() { Vec::new() } else { vec![(0, 0)] };
        while let Some((graph, done)) = path.last_mut() {
            let Some(&node) = orders[*graph].get(*done) else {
                path.pop();
                continue;
            };
            *done += 1;
            let node = model.graphs[*graph].nodes.start + node;
            places[node as usize] = next;
            next += 1;
            path.extend(model.nodes[node as usize].inside.clone().rev().map(|inner| (inner as usize, 0)));
        }
        let edges = model.graphs.iter().flat_map(|graph| &graph.edges);
        let weak = edges
            .filter(|(.., ordering)| *ordering != EdgeOrder::Always)
            .map(|&(from, to, _)| (from, to))
            .collect();
        Some(Self { model, places, orders, weak, paths: graphs.map(|_| None).collect() })
    }

    /// How a node relates to one that does not come before it in the order; `None` if the budget is
    /// used up.
    pub(crate) fn relate(&mut self, first: u32, second: u32, budget: &mut Budget) -> Option<Relation> {
        let (graph, first, second) = match self.meet(first, second, budget)? {
            Meeting::InGraph(graph, first, second) => (graph, first, second),
            Meeting::Exclusive => return Some(Relation::Exclusive),
        };
        let base = self.model.graphs[graph].nodes.start;
        let GraphPaths { ends, waited } = self.paths(graph);
        if ends.leads(first - base, second - base, budget)? {
            return Some(Relation::Before);
        }
        let may_wait = match waited {
            Some(waited) => waited.leads(first - base, second - base, budget)?,
            None => false,
        };
        Some(if may_wait { Relation::IfWaitedFor } else { Relation::Concurrent })
    }

    /// Whether edges of any kind lead from one node of a graph to another; also true if the budget
    /// is used up before that is known.
    pub(crate) fn may_lead(&mut self, from: u32, to: u32, budget: &mut Budget) -> bool {
        if self.places[from as usize] > self.places[to as usize] {
            return false;
        }
        let edges = &self.model.graphs[self.model.nodes[from as usize].graph as usize].edges;
        // Edges that do not order accesses still count here.
        if budget.take(edges.len() as u64).is_none()
            || edges.iter().any(|(.., ordering)| *ordering == EdgeOrder::Never)
        {
            return true;
        }
        !matches!(self.relate(from, to, budget), Some(Relation::Concurrent | Relation::Exclusive))
    }

    /// Where two nodes meet; `None` if the budget is used up.
    fn meet(&self, mut first: u32, mut second: u32, budget: &mut Budget) -> Option<Meeting> {
        let graph = |node: u32| self.model.nodes[node as usize].graph as usize;
        let outer = |node: u32| self.model.graphs[graph(node)].outer;
        let depth = |node: u32| self.model.graphs[graph(node)].depth;
        loop {
            if first == second {
                return Some(Meeting::Exclusive);
            }
            if graph(first) == graph(second) {
                return Some(Meeting::InGraph(graph(first), first, second));
            }
            budget.step()?;
            let (one, two) = (depth(first), depth(second));
            if one >= two {
                let Some(node) = outer(first) else { return Some(Meeting::Exclusive) };
                first = node;
            }
            if two >= one {
                let Some(node) = outer(second) else { return Some(Meeting::Exclusive) };
                second = node;
            }
        }
    }

    /// Whether an edge joins two nodes of a graph that does not surely order them.
    pub(crate) fn are_linked(&self, first: u32, second: u32) -> bool {
        self.weak.contains(&(first, second))
    }

    /// The two nodes of one graph that two nodes are or are in; the nodes themselves if there are
    /// none.
    pub(crate) fn ends(&self, first: u32, second: u32) -> (u32, u32) {
        match self.meet(first, second, &mut Budget(u64::MAX)) {
            Some(Meeting::InGraph(_, first, second)) => (first, second),
            Some(Meeting::Exclusive) | None => (first, second),
        }
    }

    fn paths(&mut self, graph: usize) -> &mut GraphPaths {
        let (model, order) = (self.model, &self.orders[graph]);
        self.paths[graph].get_or_insert_with(|| {
            let has = |wanted| model.graphs[graph].edges.iter().any(|(.., ordering)| *ordering == wanted);
            let waited =
                has(EdgeOrder::IfWaitedFor).then(|| Precedence::by_events(model, graph, order, true));
            GraphPaths { ends: Precedence::of(model, graph, order), waited }
        })
    }
}
