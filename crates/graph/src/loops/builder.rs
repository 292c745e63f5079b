//! Builds a ready-made loop or branch: the conditional node with its deciding kernels, all of it or
//! nothing.

use std::sync::Arc;

use super::decider::Decider;
use super::handle::{Deciders, name_deciders};
use crate::build::frontier::Frontier;
use crate::condition::Condition;
use crate::edge_kind::EdgeKind;
use crate::error::{Broken, Error, LoopError, NodeError, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::loop_control::{DecisionPoint, LoopControl, LoopDecision};
use crate::state::params::{ConditionalKind, NodeParams};

/// Why filling a body failed.
pub(super) enum FillError<E> {
    /// This library failed.
    Here(Error),
    /// The closure returned an error.
    Closure(E),
}

impl<E> From<Error> for FillError<E> {
    fn from(error: Error) -> Self {
        Self::Here(error)
    }
}

/// The nodes added so far. If it is dropped before it is finished, as when a closure panics, it
/// removes them again.
pub(super) struct ConditionalBuilder<'g> {
    graph: &'g Graph,
    /// `None` if the host decides.
    condition: Option<Condition>,
    control: Arc<LoopControl>,
    /// The position of the first decider.
    point: DecisionPoint,
    deciders: Deciders,
    node: Option<Node>,
    /// The edge that the node was inserted in place of.
    replaced_edge: Option<(Node, Node, EdgeKind)>,
    is_done: bool,
}

impl<'g> ConditionalBuilder<'g> {
    /// Adds a conditional node at a frontier, and the kernel that decides before it.
    pub(super) fn begin(
        at: &Frontier<'g>,
        kind: ConditionalKind,
        decider: &Decider<'_>,
        point: DecisionPoint,
    ) -> Result<Self> {
        at.ensure_full()?;
        let graph = at.graph();
        let replaced_edge = at.current_cut()?;
        at.ensure_position(&mut graph.enter()?, kind.node_kind())?;
        let control = decider.control()?;
        let condition = if decider.is_for_host() { None } else { Some(graph.condition()?) };
        let first = decider.add(&at.without_before(), condition.as_ref(), point)?;
        let deciders = Deciders::from_iter([first.clone()]);
        let mut builder =
            Self { graph, condition, control, point, deciders, node: None, replaced_edge, is_done: false };
        let bodies = if kind == ConditionalKind::IfElse { 2 } else { 1 };
        let behind = at.moved_behind(&first);
        let added = match &builder.condition {
            Some(condition) => behind.conditional(kind, condition, bodies),
            None => behind.placeholder(kind, bodies),
        };
        match added {
            Ok(node) => builder.node = Some(node),
            Err(error) => return Err(builder.give_up(error)),
        }
        Ok(builder)
    }

    /// A body of the node.
    pub(super) fn body(&self, index: usize) -> Result<Graph> {
        self.node()?.nth_body(index)
    }

    /// The node. The closure may have removed it, or the kernel before it.
    fn node(&self) -> Result<&Node> {
        let gone = self.deciders.iter().chain(&self.node).find(|node| node.is_removed());
        match (gone, &self.node) {
            (None, Some(node)) => Ok(node),
            (Some(gone), _) => Err(gone.removed()),
            (None, None) => Err(Error::Node(NodeError::GraphRemoved)),
        }
    }

    /// Adds the kernel that decides about the next round, behind everything in the body.
    pub(super) fn decide_after(&mut self, body: &Graph, decider: &Decider<'_>) -> Result<()> {
        self.node()?;
        let ends = body.loose_ends()?;
        let last =
            decider.add(&body.after_all(&ends)?, self.condition.as_ref(), DecisionPoint::AfterRound)?;
        self.deciders.push(last);
        Ok(())
    }

    /// Returns the node with its deciding kernels if the bodies were filled. Otherwise removes
    /// everything again.
    pub(super) fn finish<R, E: From<Error>>(
        mut self,
        filled: Result<R, FillError<E>>,
    ) -> Result<(Node, Deciders, R), E> {
        match filled.and_then(|inside| Ok((self.completed_node()?, inside))) {
            Ok((node, inside)) => {
                self.is_done = true;
                let deciders = core::mem::take(&mut self.deciders);
                name_deciders(&deciders, &node);
                Ok((node, deciders, inside))
            }
            Err(FillError::Here(error)) => Err(self.give_up(error).into()),
            Err(FillError::Closure(error)) => match self.undo() {
                Ok(()) => Err(error),
                Err(undo) => Err(self.broken(Error::Loop(LoopError::NotFilled), undo).into()),
            },
        }
    }

    /// The node, once its loop control is recorded.
    fn completed_node(&self) -> Result<Node> {
        let node = self.node()?.clone();
        let points = core::iter::once(self.point).chain(core::iter::repeat(DecisionPoint::AfterRound));
        self.graph.look()?.set_loop_control(node.id(), self.deciders.iter().zip(points), &self.control);
        Ok(node)
    }

    /// Undoes everything after a failure, and returns the error.
    fn give_up(&mut self, cause: Error) -> Error {
        match self.undo() {
            Ok(()) => cause,
            Err(undo) => self.broken(cause, undo),
        }
    }

    /// Breaks the graph: a loop without the kernel that decides about the next round would not end.
    fn broken(&self, cause: Error, undo: Error) -> Error {
        match self.graph.context().ensure_usable() {
            // Without the lock, which may be why the undo failed.
            Ok(()) => self.graph.hierarchy().mark_broken(Broken { cause, undo }),
            Err(_) => cause,
        }
    }

    /// A kernel in the body is removed with the node.
    fn undo(&mut self) -> Result<()> {
        self.is_done = true;
        // A lost context has no graphs to restore, and a broken graph is not restored.
        if self.graph.context().ensure_usable().is_err() || self.graph.is_broken() {
            return Ok(());
        }
        if let Some(node) = self.node.as_ref().filter(|node| !node.is_removed()) {
            // First restores the edge; until then the node takes its place.
            self.restore_edge()?;
            node.remove()?;
        }
        match self.deciders.first() {
            Some(first) if !first.is_removed() => first.remove(),
            _ => Ok(()),
        }
    }

    fn restore_edge(&self) -> Result<()> {
        match &self.replaced_edge {
            // The closure may have removed its ends, or restored it already.
            Some((from, to, kind))
                if !from.is_removed() && !to.is_removed() && self.graph.edge_kind(from, to)?.is_none() =>
            {
                self.graph.add_edges(&[(from, to, *kind)])
            }
            _ => Ok(()),
        }
    }
}

impl Drop for ConditionalBuilder<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            // The closure's panic continues. If the graph breaks here, its next use says so.
            let _said_later = self.give_up(Error::Loop(LoopError::NotFilled));
        }
    }
}

impl GraphGuard<'_> {
    /// Records that a conditional node and the nodes that decide about it are a ready-made loop or
    /// branch.
    fn set_loop_control<'n>(
        &mut self,
        node: NodeId,
        deciders: impl IntoIterator<Item = (&'n Node, DecisionPoint)>,
        control: &Arc<LoopControl>,
    ) {
        if let Some(NodeParams::Conditional(conditional)) =
            self.record_mut(node).map(|record| &mut record.node_params)
        {
            conditional.control = Some(Arc::clone(control));
        }
        for (decider, point) in deciders {
            if let Some(record) = self.record_mut(decider.id()) {
                record.owners.set_decision(LoopDecision { control: Arc::clone(control), point });
            }
        }
    }
}
