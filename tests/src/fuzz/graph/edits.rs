//! Changes of nodes and edges.

use std::collections::BTreeSet;

use cuda_graph::{
    EdgeError, EdgeKind, Error, Frontier, KernelNode, MemsetNode, Node, NodeError, ParamError, Result,
};
use cuda_launch::per;

use super::ops::{NewWork, Number};
use super::plan::{Id, Operand, Plan, Work};
use super::world::{Param, Place, Root, World};

/// Nodes of a root with those in its nodes.
pub(super) const MAX_NODES: usize = 40;

/// Makes an edit in the model if the graph made it. `faults` says which errors are due for the new
/// plan.
#[track_caller]
fn judged<T>(outcome: Result<T>, faults: &BTreeSet<Fault>) -> Option<T> {
    match outcome {
        Ok(done) => {
            assert!(faults.is_empty(), "done in spite of {faults:?}");
            Some(done)
        }
        Err(error) => {
            let fault = Fault::of(&error).unwrap_or_else(|| panic!("{error}"));
            assert!(faults.contains(&fault), "{error}: {faults:?}");
            None
        }
    }
}

/// An error that the model foresees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Cycle,
    SelfEdge,
    Duplicate,
    Twice,
}

impl Fault {
    fn of(error: &Error) -> Option<Self> {
        match error {
            Error::Edge(EdgeError::Cycle { .. }) => Some(Self::Cycle),
            Error::Edge(EdgeError::SelfEdge { .. }) => Some(Self::SelfEdge),
            Error::Edge(EdgeError::DuplicateEdge { .. }) => Some(Self::Duplicate),
            Error::Edge(EdgeError::EdgeTwice { .. }) => Some(Self::Twice),
            _ => None,
        }
    }

    /// What is wrong with adding edges to a plan.
    fn of_edges(plan: &Plan, edges: &[(Id, Id)]) -> BTreeSet<Self> {
        let mut faults = BTreeSet::new();
        let (mut with, mut new) = (plan.clone(), BTreeSet::new());
        for &(from, to) in edges {
            if from == to {
                faults.insert(Self::SelfEdge);
            }
            if !new.insert((from, to)) {
                faults.insert(Self::Twice);
            } else if !with.edges.insert((from, to)) {
                faults.insert(Self::Duplicate);
            }
        }
        if with.is_cyclic() {
            faults.insert(Self::Cycle);
        }
        faults
    }
}

impl World<'_> {
    pub(super) fn add_node(
        &mut self,
        at: Number,
        new: NewWork,
        after: [Option<Number>; 3],
        before: Option<Number>,
    ) {
        let Some(place) = self.place(at) else { return };
        if self.roots[place.root].plan.ids().len() >= MAX_NODES {
            return;
        }
        let after: Vec<Id> = after.into_iter().flatten().filter_map(|node| self.node(&place, node)).collect();
        let before = before.and_then(|node| self.node(&place, node));
        let (id, work) = (self.next_id(), self.work(place.root, new));
        let mut plan = self.plan(&place).clone();
        plan.nodes.insert(id, work.clone());
        plan.edges.extend(after.iter().map(|from| (*from, id)));
        plan.edges.extend(before.map(|to| (id, to)));
        let faults = if plan.is_cyclic() { BTreeSet::from([Fault::Cycle]) } else { BTreeSet::new() };
        let outcome = self.try_add(&place, &work, &after, before);
        if let Some(node) = judged(outcome, &faults) {
            *self.plan_mut(&place) = plan;
            let root = &mut self.roots[place.root];
            root.handles.insert(id, node);
            root.structure += 1;
        }
    }

    fn try_add(&self, place: &Place, work: &Work, after: &[Id], before: Option<Id>) -> Result<Node> {
        let graph = self.graph(place);
        let handle = |id: Id| self.handle(place, id);
        let at = graph.after_all(after.iter().map(|id| handle(*id)))?;
        let at = at.before_all(before.map(handle))?;
        self.add_work(&self.roots[place.root], &at, work)
    }

    fn add_work(&self, root: &Root, at: &Frontier<'_>, work: &Work) -> Result<Node> {
        let (add, config) = (&self.add, per(1, 1));
        let param = |number: usize| &root.params[number];
        match *work {
            Work::Add { cell, amount } => match (cell, amount) {
                (Operand::Fixed(cell), Operand::Fixed(amount)) => {
                    at.launch(add, config, (amount, self.cell(cell)))
                }
                (Operand::Fixed(cell), Operand::Param(amount)) => {
                    at.launch(add, config, (number(param(amount)), self.cell(cell)))
                }
                (Operand::Param(cell), Operand::Fixed(amount)) => {
                    at.launch(add, config, (amount, memory(param(cell))))
                }
                (Operand::Param(cell), Operand::Param(amount)) => {
                    at.launch(add, config, (number(param(amount)), memory(param(cell))))
                }
            }
            .map(Node::from),
            Work::Fill { cell, value } => match (cell, value) {
                (Operand::Fixed(cell), Operand::Fixed(value)) => at.fill(self.cell(cell), value),
                (Operand::Fixed(cell), Operand::Param(value)) => {
                    at.fill(self.cell(cell), number(param(value)))
                }
                (Operand::Param(cell), Operand::Fixed(value)) => at.fill(memory(param(cell)), value),
                (Operand::Param(cell), Operand::Param(value)) => {
                    at.fill(memory(param(cell)), number(param(value)))
                }
            }
            .map(Node::from),
            Work::Empty | Work::Child(_) => at.empty().map(Node::from),
        }
    }

    pub(super) fn add_edges(&mut self, at: Number, edges: &[(Number, Number)]) {
        let Some(place) = self.place(at) else { return };
        let ends = |(from, to): &(Number, Number)| Some((self.node(&place, *from)?, self.node(&place, *to)?));
        let edges: Vec<(Id, Id)> = edges.iter().filter_map(ends).collect();
        let handle = |id: Id| self.handle(&place, id);
        let handles: Vec<(&Node, &Node, EdgeKind)> =
            edges.iter().map(|(from, to)| (handle(*from), handle(*to), EdgeKind::Full)).collect();
        let outcome = self.graph(&place).add_edges(&handles);
        let is_done = judged(outcome, &Fault::of_edges(self.plan(&place), &edges)).is_some();
        // Where the driver refuses one of several edges, the order of the others may change.
        if is_done || edges.len() > 1 {
            self.roots[place.root].structure += 1;
        }
        if is_done {
            self.plan_mut(&place).edges.extend(edges);
        }
    }

    pub(super) fn remove_edge(&mut self, at: Number, edge: Number) {
        let Some(place) = self.place(at) else { return };
        let edges = &self.plan(&place).edges;
        let Some(at) = usize::from(edge).checked_rem(edges.len()) else { return };
        let Some(&(from, to)) = edges.iter().nth(at) else { return };
        let ends = [(self.handle(&place, from), self.handle(&place, to))];
        self.graph(&place).remove_edges(&ends).expect("the edge is removed");
        // It is not there a second time.
        let again = self.graph(&place).remove_edges(&ends);
        assert!(matches!(again, Err(Error::Edge(EdgeError::NoEdge { .. }))), "{again:?}");
        self.plan_mut(&place).edges.remove(&(from, to));
        self.roots[place.root].structure += 1;
    }

    pub(super) fn set_in_edges(&mut self, at: Number, node: Number, from: [Option<Number>; 2]) {
        let Some(place) = self.place(at) else { return };
        let Some(node) = self.node(&place, node) else { return };
        let from = from.into_iter().flatten().filter_map(|from| self.node(&place, from));
        let from: BTreeSet<Id> = from.collect();
        let mut plan = self.plan(&place).clone();
        plan.edges.retain(|(_, to)| *to != node);
        let faults = Fault::of_edges(&plan, &from.iter().map(|from| (*from, node)).collect::<Vec<_>>());
        let handles: Vec<(&Node, EdgeKind)> =
            from.iter().map(|from| (self.handle(&place, *from), EdgeKind::Full)).collect();
        let outcome = self.handle(&place, node).set_in_edges(&handles);
        if judged(outcome, &faults).is_some() {
            plan.edges.extend(from.iter().map(|from| (*from, node)));
            *self.plan_mut(&place) = plan;
            self.roots[place.root].structure += 1;
        }
    }

    pub(super) fn remove_node(&mut self, at: Number, node: Number, bridging: bool) {
        let Some(place) = self.place(at) else { return };
        let Some(node) = self.node(&place, node) else { return };
        let handle = self.handle(&place, node);
        let outcome = if bridging { handle.remove_bridging() } else { handle.remove() };
        outcome.expect("the node is removed");
        let plan = self.plan_mut(&place);
        if bridging {
            let ends: Vec<(Id, Id)> = plan.edges.iter().copied().collect();
            for (from, _) in ends.iter().filter(|(_, to)| *to == node) {
                let after = ends.iter().filter(|(from, _)| *from == node);
                plan.edges.extend(after.map(|(_, to)| (*from, *to)));
            }
        }
        let inside = match plan.remove(node) {
            Some(Work::Child(plan)) => plan.ids(),
            _ => Vec::new(),
        };
        let root = &mut self.roots[place.root];
        root.forget(inside.into_iter().chain([node]));
    }

    /// Nodes that are no more answer so.
    pub(super) fn use_removed(&mut self, root: Number, node: Number) {
        let Some(root) = self.root(root) else { return };
        let gone = &self.roots[root].gone;
        let Some(at) = usize::from(node).checked_rem(gone.len()) else { return };
        let node = &gone[at];
        let outcomes = [
            node.remove(),
            node.remove_bridging(),
            node.then().empty().map(drop),
            node.successors().map(drop),
            node.set_in_edges(&[]),
            self.roots[root].graph.find_clone_of(node).map(drop),
        ];
        for outcome in outcomes {
            let Err(Error::Node(error)) = outcome else { panic!("a removed node: {outcome:?}") };
            let says_so =
                matches!(error, NodeError::Removed { .. } | NodeError::GraphRemoved | NodeError::GraphMoved);
            assert!(says_so, "{error}");
        }
    }

    pub(super) fn set_node(&mut self, at: Number, node: Number, new: NewWork) {
        let Some(place) = self.place(at) else { return };
        let Some(node) = self.node(&place, node) else { return };
        let work = self.work(place.root, new);
        let handle = self.handle(&place, node).clone();
        let outcome = match (&self.plan(&place).nodes[&node], &work) {
            (Work::Add { .. }, &Work::Add { cell: Operand::Fixed(cell), amount: Operand::Fixed(amount) }) => {
                let handle = KernelNode::try_from(handle).expect("a kernel node");
                handle.set(&self.add, per(1, 1), (amount, self.cell(cell)))
            }
            (Work::Fill { .. }, &Work::Fill { cell: Operand::Fixed(cell), value: Operand::Fixed(value) }) => {
                MemsetNode::try_from(handle).expect("a fill").set(self.cell(cell), value)
            }
            _ => return,
        };
        if self.plan(&place).nodes[&node].is_bound() {
            assert!(matches!(outcome, Err(Error::Param(ParamError::Bound { .. }))), "{outcome:?}");
            return;
        }
        outcome.expect("the node is set");
        self.plan_mut(&place).nodes.insert(node, work);
    }
}

impl Root {
    /// Notes that nodes are gone.
    pub(super) fn forget(&mut self, ids: impl IntoIterator<Item = Id>) {
        const MAX_GONE: usize = 8;
        for id in ids {
            if let Some(node) = self.handles.remove(&id)
                && self.gone.len() < MAX_GONE
            {
                self.gone.push(node);
            }
        }
        self.structure += 1;
    }
}

fn number(param: &Param) -> &cuda_graph::GraphParam<u32> {
    match param {
        Param::Number(param, _) => param,
        Param::Cell(..) => panic!("operands name parameters of their kind"),
    }
}

fn memory(param: &Param) -> &cuda_graph::GraphParam<[u32]> {
    match param {
        Param::Cell(param, _) => param,
        Param::Number(..) => panic!("operands name parameters of their kind"),
    }
}
