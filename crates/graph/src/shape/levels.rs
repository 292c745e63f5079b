//! The levels of a graph: itself, and the bodies of its conditional nodes.
//!
//! Each level is planned by itself, and a conditional node is one node there.

use core::ops::Range;
use std::collections::HashMap;

use crate::clone::flattened::FlatGraph;
use crate::error::Result;
use crate::shape::planning::drawn::{Drawn, Role};
use crate::shape::planning::plan::{ShapePlan, plan_in};
use crate::shape::planning::surroundings::{Surroundings, beside_waiting};
use crate::shape::planning::wish::Wishes;
use crate::shape::substitute::launch::SubstituteKernels;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::params::{Conditional, NodeParams};

/// A graph to be shaped: the root graph, or a body.
pub(super) struct Level {
    /// The node that a body is of; `None` for the root graph.
    within: Option<Within>,
    pub(super) flat: FlatGraph,
    pub(super) drawn: Drawn,
    /// The levels of the bodies of each conditional node, by its number in the flattened graph.
    pub(super) bodies: HashMap<u32, Range<usize>>,
}

/// The conditional node that a body is of.
#[derive(Clone, Copy)]
struct Within {
    /// The level of the node, which is before that of the body.
    level: usize,
    /// The number of the node there.
    number: u32,
    id: NodeId,
    /// Which of its bodies it is.
    body: usize,
}

impl GraphGuard<'_> {
    /// The root graph and all bodies, outer ones before inner ones, with child graphs expanded.
    pub(super) fn levels(
        &mut self,
        substitutes: &SubstituteKernels,
        assume_progress: bool,
    ) -> Result<Vec<Level>> {
        let mut levels: Vec<Level> = Vec::new();
        let mut graphs: Vec<(SubgraphId, Option<Within>)> = vec![(SubgraphId::ROOT, None)];
        while let Some(&(subgraph, within)) = graphs.get(levels.len()) {
            let (flat, drawn) = self.read_for_shape(subgraph, within.is_none().then_some(substitutes))?;
            let mut bodies = HashMap::new();
            for (number, node) in (0..).zip(&flat.nodes) {
                let params = self.record(node.id).map(|record| &record.node_params);
                if let Some(NodeParams::Conditional(Conditional { bodies: inside, .. })) = params {
                    let first = graphs.len();
                    let within = |body| Within { level: levels.len(), number, id: node.id, body };
                    graphs.extend((0..).zip(inside).map(|(body, graph)| (*graph, Some(within(body)))));
                    bodies.insert(number, first..graphs.len());
                }
            }
            levels.push(Level { within, flat, drawn, bodies });
        }
        let waiting = waiting_branches(&levels, assume_progress);
        for (level, number) in waiting {
            let node = levels.get_mut(level).and_then(|level| level.drawn.nodes.get_mut(number as usize));
            node.into_iter().for_each(|node| node.role = Role::Waits);
        }
        Ok(levels)
    }

    /// The name of a body, for reports; `None` for the root graph.
    pub(super) fn body_name(&self, level: &Level) -> Option<String> {
        let Within { id, body, .. } = level.within?;
        let record = self.record(id)?;
        let NodeParams::Conditional(conditional) = &record.node_params else { return None };
        Some(format!("{} of {}", conditional.kind.body_name(body), record.display_name(id)))
    }
}

/// The conditional nodes with a node in a body, at any depth, that may wait for what runs beside.
fn waiting_branches(levels: &[Level], assume_progress: bool) -> Vec<(usize, u32)> {
    let mut waits: Vec<bool> = levels
        .iter()
        .map(|level| level.drawn.nodes.iter().any(|node| node.may_wait(assume_progress)))
        .collect();
    let mut found = Vec::new();
    // Inner levels come after outer ones.
    for (at, level) in levels.iter().enumerate().rev() {
        if let Some(within) = level.within
            && waits.get(at).copied().unwrap_or(true)
        {
            found.push((within.level, within.number));
            if let Some(outer) = waits.get_mut(within.level) {
                *outer = true;
            }
        }
    }
    found
}

/// The plans of levels.
pub(super) fn plan_levels(levels: &[Level], wishes: Wishes) -> Vec<ShapePlan> {
    let mut plans = Vec::with_capacity(levels.len());
    // For each level, the nodes with something beside that may wait.
    let mut beside: Vec<Vec<bool>> = Vec::with_capacity(levels.len());
    for level in levels {
        let surroundings = level.within.map_or(Surroundings::None, |within| {
            let node = beside.get(within.level).and_then(|nodes| nodes.get(within.number as usize));
            Surroundings::Body { is_beside_waiting: node.copied().unwrap_or(true) }
        });
        beside.push(match (level.bodies.is_empty(), surroundings) {
            (true, _) => Vec::new(),
            (false, Surroundings::Body { is_beside_waiting: true }) => vec![true; level.drawn.nodes.len()],
            (false, _) => beside_waiting(&level.drawn, wishes.assume_progress),
        });
        plans.push(plan_in(surroundings, &level.drawn, wishes));
    }
    plans
}
