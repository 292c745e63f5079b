//! A conditional node with its deciding kernels in the making: all of it comes to be, or nothing.

use std::sync::Arc;

use super::decide::Decider;
use super::handle::{Deciders, name_deciders};
use crate::build::frontier::Frontier;
use crate::condition::Condition;
use crate::edge_kind::EdgeKind;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::loop_control::{DecisionPoint, LoopControl};
use crate::state::owners::Owners;
use crate::state::params::ConditionalKind;

/// Why a body was not filled.
pub(super) enum Failed<E> {
    /// By something here.
    Here(Error),
    /// By the closure.
    Closure(E),
}

impl<E> From<Error> for Failed<E> {
    fn from(error: Error) -> Self {
        Self::Here(error)
    }
}

/// What was added so far. Dropped before its end, as by a closure that panics, it takes that out
/// again.
pub(super) struct Building<'g> {
    graph: &'g Graph,
    /// `None` where the host decides.
    condition: Option<Condition>,
    ready: Arc<LoopControl>,
    /// Where the first of the deciders stands.
    stand: DecisionPoint,
    deciders: Deciders,
    node: Option<Node>,
    /// The edge that the node took the place of.
    cut: Option<(Node, Node, EdgeKind)>,
    is_done: bool,
}

impl<'g> Building<'g> {
    /// Adds a conditional node at a frontier, and before it the kernel that decides.
    pub(super) fn begin(
        at: &Frontier<'g>,
        class: ConditionalKind,
        decider: &Decider<'_>,
        stand: DecisionPoint,
    ) -> Result<Self> {
        at.ensure_full()?;
        let graph = at.graph();
        let cut = at.standing_cut()?;
        let ready = decider.ready()?;
        let condition = if decider.is_for_host() { None } else { Some(graph.condition()?) };
        let first = decider.add(&at.without_before(), condition.as_ref(), stand)?;
        let deciders = Deciders::from_iter([first.clone()]);
        let mut building = Self { graph, condition, ready, stand, deciders, node: None, cut, is_done: false };
        let bodies = if class == ConditionalKind::IfElse { 2 } else { 1 };
        let behind = at.moved_behind(&first);
        let added = match &building.condition {
            Some(condition) => behind.conditional(class, condition, bodies),
            None => behind.place_holder(class, bodies),
        };
        match added {
            Ok(node) => building.node = Some(node),
            Err(error) => return Err(building.give_up(error)),
        }
        Ok(building)
    }

    /// A body of the node.
    pub(super) fn body(&self, index: usize) -> Result<Graph> {
        self.node()?.nth_body(index)
    }

    /// The node, which the closure may have removed, as it may have the kernel before it.
    fn node(&self) -> Result<&Node> {
        let gone = self.deciders.iter().chain(&self.node).find(|node| node.is_removed());
        match (gone, &self.node) {
            (None, Some(node)) => Ok(node),
            (Some(gone), _) => Err(gone.removed()),
            (None, None) => Err(Error::GraphRemoved),
        }
    }

    /// Adds the kernel that decides about the next round behind everything in the body.
    pub(super) fn decide_after(&mut self, body: &Graph, decider: &Decider<'_>) -> Result<()> {
        self.node()?;
        let ends = body.loose_ends()?;
        let last =
            decider.add(&body.after_all(&ends)?, self.condition.as_ref(), DecisionPoint::AfterRound)?;
        self.deciders.push(last);
        Ok(())
    }

    /// The node with its deciding kernels, if all went well; else all is taken out again.
    pub(super) fn end<R, E: From<Error>>(
        mut self,
        filled: Result<R, Failed<E>>,
    ) -> Result<(Node, Deciders, R), E> {
        match filled.and_then(|inside| Ok((self.finished()?, inside))) {
            Ok((node, inside)) => {
                self.is_done = true;
                let deciders = core::mem::take(&mut self.deciders);
                name_deciders(&deciders, &node);
                Ok((node, deciders, inside))
            }
            Err(Failed::Here(error)) => Err(self.give_up(error).into()),
            Err(Failed::Closure(error)) => match self.take_out() {
                Ok(()) => Err(error),
                Err(undo) => Err(self.broken(Error::NotFilled, undo).into()),
            },
        }
    }

    /// The node, once it is noted what it goes by.
    fn finished(&self) -> Result<Node> {
        let node = self.node()?.clone();
        let stands = core::iter::once(self.stand).chain(core::iter::repeat(DecisionPoint::AfterRound));
        self.graph.look()?.make_ready(node.id(), self.deciders.iter().zip(stands), &self.ready);
        Ok(node)
    }

    /// Takes out what was added, after something failed.
    fn give_up(&mut self, cause: Error) -> Error {
        match self.take_out() {
            Ok(()) => cause,
            Err(undo) => self.broken(cause, undo),
        }
    }

    /// A loop that decides nothing about its next round would not end, so its graph is not used any
    /// more.
    fn broken(&self, cause: Error, undo: Error) -> Error {
        match self.graph.look() {
            Ok(mut guard) if guard.ensure_usable().is_ok() => guard.broken(cause, undo, Owners::new()),
            _ => cause,
        }
    }

    /// The kernel in the body, if it got there, goes with the node.
    fn take_out(&mut self) -> Result<()> {
        self.is_done = true;
        // Neither a lost context nor a broken graph is put right.
        if self.graph.context().ensure_usable().is_err() || self.graph.is_broken() {
            return Ok(());
        }
        if let Some(node) = self.node.as_ref().filter(|node| !node.is_removed()) {
            // First the edge: while it is not there, the node stands for it.
            self.put_edge_back()?;
            node.remove()?;
        }
        match self.deciders.first() {
            Some(first) if !first.is_removed() => first.remove(),
            _ => Ok(()),
        }
    }

    fn put_edge_back(&self) -> Result<()> {
        match &self.cut {
            // The closure may have removed its ends, or have put it back itself.
            Some((from, to, kind))
                if !from.is_removed() && !to.is_removed() && self.graph.edge_kind(from, to)?.is_none() =>
            {
                self.graph.add_edges(&[(from, to, *kind)])
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            // The panic of the closure goes on, so that the error is told by the next use.
            let _told_later = self.give_up(Error::NotFilled);
        }
    }
}
