//! The program of a host loop, step by step.

use std::sync::Arc;

use super::segment::Segment;
use super::stages::Stage;
use crate::clone::flattened::{Action, ConditionalNumber, FlatGraph, FoundConditionals};
use crate::error::Result;
use crate::exec::options::InstantiateOptions;
use crate::state::guard::GraphGuard;
use crate::state::ids::SubgraphId;
use crate::state::loop_control::{DecisionPoint, LoopControl};
use crate::state::params::ConditionalKind;

/// The steps for one graph: the outermost, or a body.
pub(crate) type Plan = Vec<HostStep>;

#[derive(Clone, Copy, Debug)]
pub(crate) enum HostStep {
    /// Launches a segment, by its number.
    Launch(usize),
    /// Decides about a loop or branch.
    Decide(ConditionalNumber, DecisionPoint),
    /// Runs a loop or branch.
    Enter(ConditionalNumber),
}

/// A loop or branch.
#[derive(Debug)]
pub(crate) struct HostConditional {
    pub(crate) kind: ConditionalKind,
    pub(crate) name: String,
    pub(crate) control: Arc<LoopControl>,
    /// The plans of the bodies, by their numbers.
    pub(crate) bodies: Vec<usize>,
}

/// A whole program.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The plan of the graph, then those of the bodies.
    pub(crate) plans: Vec<Plan>,
    pub(crate) segments: Vec<Segment>,
    /// The loops and branches by number; `None` if the node was removed and only nodes that decide
    /// about it are left.
    pub(crate) conditionals: Vec<Option<HostConditional>>,
}

impl Program {
    /// Makes the program of a root graph and of the bodies in it. The context is current.
    pub(crate) fn make(guard: &mut GraphGuard<'_>, options: &InstantiateOptions) -> Result<Self> {
        let mut program = Self::default();
        let mut found = FoundConditionals::default();
        let mut subgraphs = vec![SubgraphId::ROOT];
        // A plan and its subgraph have the same number.
        while let Some(&subgraph) = subgraphs.get(program.plans.len()) {
            let flat = FlatGraph::of(guard, subgraph, &mut found)?;
            program.take_in(&found, &mut subgraphs);
            let plan = program.plan(guard, &flat, options)?;
            program.plans.push(plan);
        }
        Ok(program)
    }

    /// Adds the loops and branches that are new.
    fn take_in(&mut self, found: &FoundConditionals, subgraphs: &mut Vec<SubgraphId>) {
        for conditional in found.all.iter().skip(self.conditionals.len()) {
            self.conditionals.push(conditional.node.as_ref().map(|node| {
                let first = subgraphs.len();
                subgraphs.extend_from_slice(&node.bodies);
                let bodies = (first..subgraphs.len()).collect();
                HostConditional {
                    kind: node.kind,
                    name: node.name.clone(),
                    control: Arc::clone(&conditional.control),
                    bodies,
                }
            }));
        }
    }

    fn plan(
        &mut self,
        guard: &GraphGuard<'_>,
        flat: &FlatGraph,
        options: &InstantiateOptions,
    ) -> Result<Plan> {
        let mut plan = Plan::new();
        for Stage { device, edges, host } in flat.stages(guard)? {
            if device.iter().any(|&item| matches!(flat.nodes[item].action, Action::Run(_))) {
                self.segments.push(Segment::make(guard, flat, &device, &edges, options)?);
                plan.push(HostStep::Launch(self.segments.len() - 1));
            }
            plan.extend(host.into_iter().filter_map(|item| match flat.nodes[item].action {
                Action::Nothing | Action::Run(_) => None,
                Action::Decide(number, point) => self.decide(number, point),
                Action::Enter(number) => Some(HostStep::Enter(number)),
            }));
        }
        Ok(plan)
    }

    /// The step of a deciding node, unless its loop or branch was removed.
    fn decide(&self, number: ConditionalNumber, point: DecisionPoint) -> Option<HostStep> {
        self.conditionals.get(number)?.as_ref().map(|_| HostStep::Decide(number, point))
    }
}
