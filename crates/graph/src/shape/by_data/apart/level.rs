//! The nodes of one graph that are apart: of the root graph, or of a body.

use std::collections::{HashMap, HashSet};

use super::Met;
use crate::check::reachability::{Budget, Reachability};
use crate::error::Meeting;
use crate::footprint::index::{AccessIndex, Key};
use crate::footprint::{Footprint, Touch};
use crate::shape::by_data::parts::{Part, Parts};
use crate::state::ids::NodeId;

/// The accesses of a graph's nodes, and which nodes are apart.
#[derive(Clone, Debug)]
pub(in crate::shape) struct ApartLevel {
    numbers: HashMap<NodeId, u32>,
    nodes: Vec<ApartNode>,
    /// The accesses of all nodes that are not opaque.
    index: AccessIndex<u32>,
    drawn: Reachability,
    kept: Reachability,
}

#[derive(Clone, Debug)]
struct ApartNode {
    id: NodeId,
    /// Whether it is a node of the user, and not one that passed order on.
    is_real: bool,
    footprint: Footprint,
    keys: Vec<Key>,
}

/// Footprints that nodes of the graph are about to get.
#[derive(Debug, Default)]
pub(super) struct LevelChanges(Vec<(u32, Footprint)>);

/// Comparisons and steps of one check.
const STEPS: u64 = 50_000_000;

impl ApartLevel {
    /// `ids` are the nodes by number; `drawn` and `kept` tell what the drawing and the executable
    /// order.
    pub(in crate::shape::by_data) fn new(
        ids: impl Iterator<Item = NodeId>,
        footprints: Vec<Footprint>,
        parts: &Parts,
        drawn: Reachability,
        kept: Reachability,
    ) -> Self {
        let mut apart =
            Self { numbers: HashMap::new(), nodes: Vec::new(), index: AccessIndex::default(), drawn, kept };
        for ((number, id), footprint) in (0..).zip(ids).zip(footprints) {
            let part = parts.of_node(number);
            let is_real = part != Part::Passes;
            if is_real {
                apart.numbers.insert(id, number);
            }
            // An opaque node is ordered with all that the drawing orders it with, whatever it does.
            let known = if part == Part::Transparent { footprint } else { Footprint::OPAQUE };
            apart.nodes.push(ApartNode { id, is_real, footprint: Footprint::OPAQUE, keys: Vec::new() });
            apart.enter(number, known);
        }
        apart
    }

    /// Whether a node is of this graph.
    pub(super) fn has(&self, id: NodeId) -> bool {
        self.numbers.contains_key(&id)
    }

    /// The nodes that may be apart from others.
    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> {
        let nodes = self.nodes.iter().filter(|node| node.is_real && node.footprint.touches().is_some());
        nodes.map(|node| node.id)
    }

    /// Adds the footprint that a node is about to get to changes, unless it may get any, or has the
    /// same already.
    pub(super) fn add(&self, changes: &mut LevelChanges, id: NodeId, footprint: Footprint) {
        let Some(&number) = self.numbers.get(&id) else { return };
        let before = &self.nodes[number as usize].footprint;
        if before.touches().is_some() && *before != footprint {
            changes.0.push((number, footprint));
        }
    }

    /// Whether nodes can get footprints, all together.
    ///
    /// # Errors
    /// Two nodes that are apart would meet.
    pub(super) fn check(&mut self, changes: &LevelChanges) -> Result<(), Met> {
        let mut budget = Budget(STEPS);
        let changed: HashSet<u32> = changes.0.iter().map(|(number, _)| *number).collect();
        let mut new = AccessIndex::default();
        for (number, footprint) in &changes.0 {
            let Some(touches) = footprint.touches() else {
                self.check_opaque(*number, &mut budget)?;
                continue;
            };
            for touch in touches {
                let Self { nodes, index, drawn, kept, .. } = self;
                let unchanged = index.near(touch).filter(|(_, entry)| !changed.contains(&entry.node));
                for (_, entry) in unchanged.chain(new.near(touch)) {
                    let met = |why| Met {
                        node: nodes[*number as usize].id,
                        other: nodes[entry.node as usize].id,
                        why,
                    };
                    let is_conflict = conflicts(touch, &entry.touch, &mut budget);
                    if is_conflict.ok_or_else(|| met(Meeting::TooMany))?
                        && are_apart(*number, entry.node, drawn, kept, &mut budget)
                    {
                        return Err(met(Meeting::Conflict));
                    }
                }
            }
            for touch in touches {
                new.insert(*number, *touch);
            }
        }
        Ok(())
    }

    /// Whether a node is ordered with all that the drawing orders it with.
    fn check_opaque(&mut self, number: u32, budget: &mut Budget) -> Result<(), Met> {
        let Self { nodes, drawn, kept, .. } = self;
        let mut others = (0..).zip(&*nodes).filter(|(other, node)| node.is_real && *other != number);
        match others.find(|(other, _)| are_apart(number, *other, drawn, kept, budget)) {
            None => Ok(()),
            Some((_, other)) => {
                let node = nodes[number as usize].id;
                Err(Met { node, other: other.id, why: Meeting::Unknown })
            }
        }
    }

    /// Notes that nodes have got footprints.
    pub(super) fn commit(&mut self, changes: LevelChanges) {
        changes.0.into_iter().for_each(|(number, footprint)| self.enter(number, footprint));
    }

    fn enter(&mut self, number: u32, footprint: Footprint) {
        let node = &mut self.nodes[number as usize];
        node.keys.drain(..).for_each(|key| self.index.remove(key));
        for touch in footprint.touches().unwrap_or_default() {
            node.keys.push(self.index.insert(number, *touch));
        }
        node.footprint = footprint;
    }
}

/// Whether two accesses conflict; `None` if the budget is used up.
fn conflicts(one: &Touch, two: &Touch, budget: &mut Budget) -> Option<bool> {
    budget.step()?;
    if !one.writes && !two.writes {
        return Some(false);
    }
    budget.take(one.region.effort(&two.region))?;
    Some(one.conflicts(two))
}

/// Whether the drawing orders two nodes, and the executable does not, as far as the budget tells.
fn are_apart(
    one: u32,
    two: u32,
    drawn: &mut Reachability,
    kept: &mut Reachability,
    budget: &mut Budget,
) -> bool {
    let mut leads = |graph: &mut Reachability, unknown| {
        one == two
            || graph.leads(one, two, budget).unwrap_or(unknown)
            || graph.leads(two, one, budget).unwrap_or(unknown)
    };
    !leads(kept, false) && leads(drawn, true)
}
