//! A graph with the graphs of its child graph nodes spread out in it, as the host runs it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use cuda_sys::CUgraphNode;

use crate::edge_kind::EdgeKind;
use crate::error::{Error, Result};
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::loop_control::{DecisionPoint, LoopControl};
use crate::state::params::{Conditional, ConditionalKind, NodeParams};

/// Which of the loops and branches of a graph; their numbers go through all bodies.
pub(crate) type Number = usize;

/// What the host does about a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// It has its place in the order, and does nothing.
    Nothing,
    /// The device runs it, with others.
    Run(CUgraphNode),
    /// The host decides about a loop or branch.
    Decide(Number, DecisionPoint),
    /// The host runs a loop or branch.
    Enter(Number),
}

impl Act {
    /// Whether the device does it.
    pub(crate) fn is_of_device(self) -> bool {
        matches!(self, Self::Nothing | Self::Run(_))
    }
}

#[derive(Debug)]
pub(crate) struct Item {
    /// For its name; of the ends of a child graph, the node that has it.
    pub(crate) id: NodeId,
    pub(crate) act: Act,
}

/// Nodes with their order.
#[derive(Debug, Default)]
pub(crate) struct Flat {
    pub(crate) items: Vec<Item>,
    pub(crate) edges: Vec<(usize, usize, EdgeKind)>,
}

/// A part of a run: the device runs its nodes, then the host does what it has to do, then comes the
/// next one.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    /// Nodes, in an order that all edges go along.
    pub(crate) device: Vec<usize>,
    /// Between these. What other stages do comes before, or after.
    pub(crate) edges: Vec<(usize, usize, EdgeKind)>,
    pub(crate) host: Vec<usize>,
}

/// A loop or a branch.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) ready: Arc<LoopControl>,
    /// What is known once its node was met.
    pub(crate) node: Option<Chosen>,
}

#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) class: ConditionalKind,
    pub(crate) name: String,
    pub(crate) bodies: Box<[SubgraphId]>,
}

/// The loops and branches that were met.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    pub(crate) all: Vec<Choice>,
    /// By the address of what they go by, which is in the list.
    by_ready: HashMap<usize, Number>,
}

impl Choices {
    fn number(&mut self, ready: &Arc<LoopControl>) -> Number {
        let all = &mut self.all;
        *self.by_ready.entry(Arc::as_ptr(ready).addr()).or_insert_with(|| {
            all.push(Choice { ready: Arc::clone(ready), node: None });
            all.len() - 1
        })
    }
}

/// The ends of a child graph among the items: what comes before all of it, and after.
type Ends = (usize, usize);

impl Flat {
    /// The graph at a place, whose bodies stay where they are.
    pub(crate) fn of(
        guard: &mut GraphGuard<'_>,
        subgraph: SubgraphId,
        choices: &mut Choices,
    ) -> Result<Self> {
        let mut flat = Self::default();
        let mut waiting: Vec<(SubgraphId, Option<Ends>)> = vec![(subgraph, None)];
        while let Some((subgraph, ends)) = waiting.pop() {
            flat.spread(guard, subgraph, ends, choices, &mut waiting)?;
        }
        Ok(flat)
    }

    /// Adds the nodes of one graph, and notes those embedded in it.
    fn spread(
        &mut self,
        guard: &mut GraphGuard<'_>,
        subgraph: SubgraphId,
        ends: Option<Ends>,
        choices: &mut Choices,
        waiting: &mut Vec<(SubgraphId, Option<Ends>)>,
    ) -> Result<()> {
        let graph = guard.graph_at(subgraph)?;
        let mut found: HashMap<usize, Ends> = HashMap::new();
        for raw in guard.raw_nodes_of(graph)? {
            let index = guard.index_in(subgraph, raw)?;
            let Some(id) = guard.id(index) else { return Err(Error::UnknownNode { raw: raw.addr() }) };
            let inside = guard.record(id).and_then(|record| record.node_params.embedded());
            let act = if inside.is_some() { Act::Nothing } else { act(guard, id, raw, choices)? };
            let begin = self.push(Item { id, act });
            let end = match inside {
                None => begin,
                Some(inner) => {
                    let end = self.push(Item { id, act: Act::Nothing });
                    // Also if there is nothing in it.
                    self.edges.push((begin, end, EdgeKind::Full));
                    waiting.push((inner, Some((begin, end))));
                    end
                }
            };
            found.insert(raw.addr(), (begin, end));
        }
        let edges = self.edges.len();
        for (from, to, kind) in guard.raw_edges_of(graph)? {
            if let (Some(&(_, from)), Some(&(to, _))) = (found.get(&from.addr()), found.get(&to.addr())) {
                self.edges.push((from, to, kind));
            }
        }
        if let Some(ends) = ends {
            self.tie(found.into_values(), edges, ends);
        }
        Ok(())
    }

    /// Puts the nodes of a child graph, whose edges have been entered from some number on, between
    /// its ends.
    fn tie(&mut self, nodes: impl Iterator<Item = Ends>, edges: usize, (begin, end): Ends) {
        let edges = self.edges.get(edges..).unwrap_or_default();
        let waiting: HashSet<usize> = edges.iter().map(|edge| edge.1).collect();
        // What begins after another's trigger may end before it.
        let full = edges.iter().filter(|edge| edge.2 == EdgeKind::Full);
        let awaited: HashSet<usize> = full.map(|edge| edge.0).collect();
        let mut nodes: Vec<Ends> = nodes.collect();
        nodes.sort_unstable();
        for (first, last) in nodes {
            if !waiting.contains(&first) {
                self.edges.push((begin, first, EdgeKind::Full));
            }
            if !awaited.contains(&last) {
                self.edges.push((last, end, EdgeKind::Full));
            }
        }
    }

    fn push(&mut self, item: Item) -> usize {
        self.items.push(item);
        self.items.len() - 1
    }
}

/// What the host does about a node without a child graph.
fn act(guard: &GraphGuard<'_>, id: NodeId, raw: CUgraphNode, choices: &mut Choices) -> Result<Act> {
    let refused = |why| Err(Error::NotOnHost { node: guard.name(id), why });
    if let Some(decision) = guard.record(id).and_then(|record| record.owners.decision()) {
        return Ok(Act::Decide(choices.number(&decision.control), decision.point));
    }
    if !guard.conditions.of_kernel(id.index).is_empty() {
        return refused("it sets a condition, which only the driver's own conditional nodes can go by");
    }
    let Some(record) = guard.record(id) else { return Err(Error::UnknownNode { raw: raw.addr() }) };
    Ok(match &record.node_params {
        NodeParams::Empty => Act::Nothing,
        NodeParams::Conditional(Conditional { control: None, .. }) => {
            return refused("it goes by a condition that kernels set, and the host cannot see that");
        }
        NodeParams::Conditional(Conditional { control: Some(ready), kind: class, bodies, .. }) => {
            let number = choices.number(ready);
            let chosen = Chosen { class: *class, name: record.display_name(id), bodies: bodies.clone() };
            if let Some(choice) = choices.all.get_mut(number) {
                choice.node = Some(chosen);
            }
            Act::Enter(number)
        }
        _ => Act::Run(raw),
    })
}

impl Flat {
    /// The stages, one after the other.
    pub(crate) fn stages(&self, guard: &GraphGuard<'_>) -> Result<Vec<Stage>> {
        let order = self.order(guard)?;
        let mut subgraph = vec![0; self.items.len()];
        let mut stages: Vec<Stage> = Vec::new();
        for (item, stage) in order {
            subgraph[item] = stage;
            if stages.len() <= stage {
                stages.resize_with(stage + 1, Stage::default);
            }
            match self.items[item].act.is_of_device() {
                true => stages[stage].device.push(item),
                false => stages[stage].host.push(item),
            }
        }
        for &(from, to, kind) in &self.edges {
            let both = [from, to].into_iter().all(|item| self.items[item].act.is_of_device());
            if both && subgraph[from] == subgraph[to] {
                stages[subgraph[from]].edges.push((from, to, kind));
            }
        }
        Ok(stages)
    }

    /// The items in an order that all edges go along, each with its stage.
    fn order(&self, guard: &GraphGuard<'_>) -> Result<Vec<(usize, usize)>> {
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); self.items.len()];
        let mut waits_for = vec![0_usize; self.items.len()];
        for &(from, to, _) in &self.edges {
            after[from].push(to);
            waits_for[to] += 1;
        }
        let mut stage = vec![0_usize; self.items.len()];
        let mut ready: BTreeSet<usize> = (0..self.items.len()).filter(|&item| waits_for[item] == 0).collect();
        let mut order = Vec::with_capacity(self.items.len());
        while let Some(item) = ready.pop_first() {
            order.push((item, stage[item]));
            let behind = stage[item] + usize::from(!self.items[item].act.is_of_device());
            for &next in &after[item] {
                stage[next] = stage[next].max(behind);
                waits_for[next] -= 1;
                if waits_for[next] == 0 {
                    ready.insert(next);
                }
            }
        }
        if order.len() < self.items.len() {
            return Err(Error::Cycle { path: self.cycle(guard, &waits_for) });
        }
        Ok(order)
    }

    /// The nodes of a cycle, which other code can have made.
    fn cycle(&self, guard: &GraphGuard<'_>, waits_for: &[usize]) -> Vec<String> {
        // Each of these waits for another one.
        let stuck = |item: usize| waits_for[item] > 0;
        let before: HashMap<usize, usize> =
            self.edges.iter().filter(|edge| stuck(edge.0)).map(|edge| (edge.1, edge.0)).collect();
        let Some(mut item) = (0..self.items.len()).find(|item| stuck(*item)) else { return Vec::new() };
        let mut seen = HashSet::new();
        while seen.insert(item) {
            item = before.get(&item).copied().unwrap_or(item);
        }
        let (mut path, begin) = (vec![item], item);
        while let Some(&previous) = before.get(&item).filter(|previous| **previous != begin) {
            path.push(previous);
            item = previous;
        }
        path.iter().rev().map(|item| guard.name(self.items[*item].id).into_string()).collect()
    }
}
