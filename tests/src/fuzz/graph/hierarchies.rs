//! Clones, and graphs in nodes.

use std::collections::BTreeMap;

use cuda_graph::{EmbedError, Error, Graph, Node, Result};

use super::edits::MAX_NODES;
use super::ops::Number;
use super::plan::{Id, Plan, Work};
use super::world::{Place, World};

/// Finds the handles of all nodes of a graph that is a copy of another, or is the other one after a
/// move: the old handles lead to the new ones.
fn found(
    graph: &Graph,
    plan: &Plan,
    twins: &BTreeMap<Id, Id>,
    old: &BTreeMap<Id, Node>,
) -> Result<BTreeMap<Id, Node>> {
    let mut handles = BTreeMap::new();
    for (id, work) in &plan.nodes {
        let node = graph.find_clone_of(&old[id])?;
        if let Work::Child(inner) = work {
            let child = cuda_graph::ChildGraphNode::try_from(node.clone()).expect("a child graph node");
            handles.extend(found(&child.embedded()?, inner, twins, old)?);
        }
        handles.insert(twins[id], node);
    }
    Ok(handles)
}

impl World<'_> {
    /// A copy of the model of a graph, with the old numbers of its nodes to the new ones.
    fn copied(&mut self, place: &Place) -> (Plan, BTreeMap<Id, Id>) {
        let (plan, params) = (self.plan(place).clone(), self.roots[place.root].initial());
        let mut twins = BTreeMap::new();
        let copy = plan.copied(&params, &mut || self.next_id(), &mut twins);
        (copy, twins)
    }

    pub(super) fn clone_graph(&mut self, at: Number) {
        let Some(place) = self.place(at).filter(|_| self.may_push()) else { return };
        let graph = match self.graph(&place).clone_graph() {
            Ok(graph) => graph,
            Err(Error::Embed(EmbedError::HoldsChildren)) if !place.path.is_empty() => return,
            Err(error) => panic!("{error}"),
        };
        let (copy, twins) = self.copied(&place);
        let handles = found(&graph, self.plan(&place), &twins, &self.roots[place.root].handles);
        self.push(graph, copy, handles.expect("the nodes of a clone"));
    }

    /// Whether a graph may go into another one: it is a root, and the other one is not in it.
    fn may_embed(&self, at: &Place, of: &Place) -> bool {
        of.path.is_empty() && at.root != of.root
    }

    fn has_room(&self, at: &Place, of: &Place) -> bool {
        self.roots[at.root].plan.ids().len() + self.plan(of).ids().len() < MAX_NODES
    }

    pub(super) fn embed(&mut self, at: Number, of: Number, after: Option<Number>) {
        let Some((at, of)) = self.place(at).zip(self.place(of)) else { return };
        if !self.has_room(&at, &of) {
            return;
        }
        let after = after.and_then(|after| self.node(&at, after));
        let (graph, source) = (self.graph(&at), self.graph(&of));
        let frontier = after.map_or_else(|| graph.root(), |after| self.handle(&at, after).then());
        let outcome = frontier.child(&source);
        let Some(child) = self.embedded(outcome, self.may_embed(&at, &of)) else { return };
        let (copy, twins) = self.copied(&of);
        let inside = child.embedded().expect("the embedded graph");
        let handles = found(&inside, self.plan(&of), &twins, &self.roots[of.root].handles);
        self.enter(&at, after, child.into(), copy, handles.expect("the nodes of an embedded graph"));
    }

    #[track_caller]
    fn embedded<T>(&self, outcome: Result<T>, is_due: bool) -> Option<T> {
        match outcome {
            Ok(done) => {
                assert!(is_due, "a graph went where it may not");
                Some(done)
            }
            Err(Error::Embed(EmbedError::CannotMove { .. })) => None,
            Err(error) => {
                let is_foreseen = matches!(
                    error,
                    Error::Embed(
                        EmbedError::EmbedsItself
                            | EmbedError::Embedded { .. }
                            | EmbedError::ReplacesItself { .. }
                    )
                );
                assert!(!is_due && is_foreseen, "{error}");
                None
            }
        }
    }

    /// Enters a child graph node in the model.
    fn enter(
        &mut self,
        at: &Place,
        after: Option<Id>,
        node: Node,
        inside: Plan,
        handles: BTreeMap<Id, Node>,
    ) {
        let id = self.next_id();
        let plan = self.plan_mut(at);
        plan.nodes.insert(id, Work::Child(inside));
        plan.edges.extend(after.map(|after| (after, id)));
        let root = &mut self.roots[at.root];
        root.handles.extend(handles);
        root.handles.insert(id, node);
        root.structure += 1;
    }

    pub(super) fn move_graph(&mut self, at: Number, of: Number, after: Option<Number>) {
        let Some((at, of)) = self.place(at).zip(self.place(of)) else { return };
        if !self.has_room(&at, &of) {
            return;
        }
        let after = after.and_then(|after| self.node(&at, after));
        let (graph, moved) = (self.graph(&at), self.graph(&of));
        let frontier = after.map_or_else(|| graph.root(), |after| self.handle(&at, after).then());
        let outcome = frontier.child_moved(moved);
        let Some(child) = self.embedded(outcome, self.may_embed(&at, &of)) else { return };
        let (copy, twins) = self.copied(&of);
        let inside = child.embedded().expect("the embedded graph");
        let handles = found(&inside, self.plan(&of), &twins, &self.roots[of.root].handles);
        self.enter(&at, after, child.into(), copy, handles.expect("the nodes of a moved graph"));
        let old = self.roots.remove(of.root);
        assert!(old.graph.len().is_err(), "the old handle of a moved graph");
    }

    pub(super) fn replace(&mut self, at: Number, node: Number, of: Number) {
        let Some((at, of)) = self.place(at).zip(self.place(of)) else { return };
        let Some(node) = self.node(&at, node) else { return };
        let Work::Child(old) = &self.plan(&at).nodes[&node] else { return };
        if !self.has_room(&at, &of) {
            return;
        }
        let old = old.ids();
        let child = self.roots[at.root].child(node);
        let outcome = child.set_graph(&self.graph(&of));
        if self.embedded(outcome, self.may_embed(&at, &of)).is_none() {
            return;
        }
        let (copy, twins) = self.copied(&of);
        let inside = child.embedded().expect("the embedded graph");
        let handles = found(&inside, self.plan(&of), &twins, &self.roots[of.root].handles);
        self.plan_mut(&at).nodes.insert(node, Work::Child(copy));
        let root = &mut self.roots[at.root];
        root.forget(old);
        root.handles.extend(handles.expect("the nodes of an embedded graph"));
    }
}
