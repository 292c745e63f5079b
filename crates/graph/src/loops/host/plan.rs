//! What the host does, step by step.

use std::sync::Arc;

use super::flat::{Act, Choices, Flat, Number, Stage};
use super::stretch::{Making, Stretch};
use crate::error::Result;
use crate::state::guard::GraphGuard;
use crate::state::ids::SubgraphId;
use crate::state::loop_control::{DecisionPoint, LoopControl};
use crate::state::params::ConditionalKind;

/// What is done with one graph: the outermost, or a body.
pub(crate) type Plan = Vec<Step>;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Launches a stretch, by its number.
    Launch(usize),
    /// Decides about a loop or branch.
    Decide(Number, DecisionPoint),
    /// Runs a loop or branch.
    Enter(Number),
}

/// A loop or branch.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) class: ConditionalKind,
    pub(crate) name: String,
    pub(crate) ready: Arc<LoopControl>,
    /// The plans of the bodies, by their numbers.
    pub(crate) bodies: Vec<usize>,
}

/// All that a run needs.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The first is that of the graph.
    pub(crate) plans: Vec<Plan>,
    pub(crate) stretches: Vec<Stretch>,
    /// By their numbers; `None` for one that decides about a node that was removed.
    pub(crate) chosen: Vec<Option<Chosen>>,
}

impl Program {
    /// Makes the executables of a root graph and of the bodies in it. With the context current.
    pub(crate) fn make(guard: &mut GraphGuard<'_>, making: &Making<'_>) -> Result<Self> {
        let mut program = Self::default();
        let mut choices = Choices::default();
        let mut subgraphs = vec![SubgraphId::ROOT];
        // The number of a plan is that of its place.
        while let Some(&subgraph) = subgraphs.get(program.plans.len()) {
            let flat = Flat::of(guard, subgraph, &mut choices)?;
            program.take_in(&choices, &mut subgraphs);
            let plan = program.plan(guard, &flat, making)?;
            program.plans.push(plan);
        }
        Ok(program)
    }

    /// Enters the loops and branches that are new.
    fn take_in(&mut self, choices: &Choices, subgraphs: &mut Vec<SubgraphId>) {
        for choice in choices.all.iter().skip(self.chosen.len()) {
            self.chosen.push(choice.node.as_ref().map(|node| {
                let first = subgraphs.len();
                subgraphs.extend_from_slice(&node.bodies);
                let bodies = (first..subgraphs.len()).collect();
                Chosen {
                    class: node.class,
                    name: node.name.clone(),
                    ready: Arc::clone(&choice.ready),
                    bodies,
                }
            }));
        }
    }

    fn plan(&mut self, guard: &GraphGuard<'_>, flat: &Flat, making: &Making<'_>) -> Result<Plan> {
        let mut plan = Plan::new();
        for Stage { device, edges, host } in flat.stages(guard)? {
            if device.iter().any(|&item| matches!(flat.items[item].act, Act::Run(_))) {
                self.stretches.push(Stretch::make(guard, flat, &device, &edges, making)?);
                plan.push(Step::Launch(self.stretches.len() - 1));
            }
            plan.extend(host.into_iter().filter_map(|item| match flat.items[item].act {
                Act::Nothing | Act::Run(_) => None,
                Act::Decide(number, stand) => self.decide(number, stand),
                Act::Enter(number) => Some(Step::Enter(number)),
            }));
        }
        Ok(plan)
    }

    /// Nobody decides about a loop or branch that was removed.
    fn decide(&self, number: Number, stand: DecisionPoint) -> Option<Step> {
        self.chosen.get(number)?.as_ref().map(|_| Step::Decide(number, stand))
    }
}
