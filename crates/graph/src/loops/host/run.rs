//! One run of a program.

use cuda_handles::Stream;

use super::HostCounts;
use super::plan::{HostStep, Program};
use crate::clone::flattened::ConditionalNumber;
use crate::error::{Error, HostLoopError, HostRound, Result};
use crate::state::bindings::ParamValue;
use crate::state::loop_control::DecisionPoint;
use crate::state::params::ConditionalKind;
use crate::wording::Named;

/// The state of a loop or branch. It persists over runs, as conditions of the driver do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConditionalState {
    goes_on: bool,
    /// Rounds since the loop was entered.
    done: u64,
}

/// A plan that is being executed.
struct PlanFrame {
    plan: usize,
    /// The next step.
    step: usize,
    /// The loop or branch whose body it is, and the round, from 1 on.
    of: Option<(ConditionalNumber, u64)>,
}

/// A run on a stream.
pub(crate) struct Run<'r> {
    pub(crate) program: &'r mut Program,
    pub(crate) states: &'r mut [ConditionalState],
    pub(crate) counts: &'r mut HostCounts,
    pub(crate) stream: &'r Stream,
    /// The values of the graph parameters.
    pub(crate) values: &'r [ParamValue],
}

/// An error, and the action that failed.
struct StepError {
    cause: Error,
    doing: String,
}

impl Run<'_> {
    /// Executes all steps, and waits for the last.
    pub(crate) fn all_blocking(mut self) -> Result<()> {
        // Nested bodies are on this stack, however deep.
        let mut frames = vec![PlanFrame { plan: 0, step: 0, of: None }];
        while let Some(frame) = frames.last_mut() {
            let next = self.program.plans.get(frame.plan).and_then(|plan| plan.get(frame.step)).copied();
            let failed = match next {
                Some(HostStep::Enter(number)) => {
                    frame.step += 1;
                    frames.extend(self.enter(number));
                    continue;
                }
                Some(step) => {
                    frame.step += 1;
                    self.step(step)
                }
                None => {
                    if !self.again(frame) {
                        frames.pop();
                    }
                    continue;
                }
            };
            if let Err(failed) = failed {
                return Err(self.with_context(&frames, failed));
            }
        }
        let waited = self.stream.synchronize_blocking().map_err(Error::from);
        waited.map_err(|cause| {
            self.with_context(&[], StepError { cause, doing: "waiting for the end".to_owned() })
        })
    }

    fn step(&mut self, step: HostStep) -> Result<(), StepError> {
        match step {
            HostStep::Launch(segment) => {
                let Some(segment) = self.program.segments.get_mut(segment) else { return Ok(()) };
                let launched = segment.launch(self.stream);
                launched
                    .map_err(|cause| StepError { cause, doing: "launching what comes next".to_owned() })?;
                self.counts.launches += 1;
            }
            HostStep::Decide(number, point) => self.decide(number, point)?,
            HostStep::Enter(_) => {}
        }
        Ok(())
    }

    fn decide(&mut self, number: ConditionalNumber, point: DecisionPoint) -> Result<(), StepError> {
        let (Some(Some(conditional)), Some(state)) =
            (self.program.conditionals.get(number), self.states.get_mut(number))
        else {
            return Ok(());
        };
        let decided = conditional.control.decide_blocking(point, &mut state.done, self.stream, self.values);
        state.goes_on = decided.map_err(|cause| StepError {
            cause,
            doing: format!("deciding about `{}`", Named(&conditional.name)),
        })?;
        self.counts.decisions += 1;
        Ok(())
    }

    /// The frame of the body to run now, if there is one.
    fn enter(&mut self, number: ConditionalNumber) -> Option<PlanFrame> {
        let (conditional, state) =
            (self.program.conditionals.get(number)?.as_ref()?, self.states.get(number)?);
        let body = match (conditional.kind, state.goes_on) {
            (_, true) => 0,
            (ConditionalKind::IfElse, false) => 1,
            (_, false) => return None,
        };
        if conditional.kind == ConditionalKind::While {
            self.counts.rounds += 1;
        }
        Some(PlanFrame { plan: *conditional.bodies.get(body)?, step: 0, of: Some((number, 1)) })
    }

    /// At the end of a plan, begins the loop's next round if there is one.
    fn again(&mut self, frame: &mut PlanFrame) -> bool {
        let Some((number, round)) = &mut frame.of else { return false };
        let is_loop = self.program.conditionals.get(*number).is_some_and(|conditional| {
            conditional.as_ref().is_some_and(|conditional| conditional.kind == ConditionalKind::While)
        });
        if !is_loop || self.states.get(*number).is_none_or(|state| !state.goes_on) {
            return false;
        }
        self.counts.rounds += 1;
        *round += 1;
        frame.step = 0;
        true
    }

    /// The error with the loops and rounds it happened in.
    fn with_context(&self, frames: &[PlanFrame], StepError { cause, doing }: StepError) -> Error {
        let round = |frame: &PlanFrame| {
            let (number, round) = frame.of?;
            let conditional = self.program.conditionals.get(number)?.as_ref()?;
            let round = (conditional.kind == ConditionalKind::While).then_some(round);
            Some(HostRound { node: conditional.name.clone(), round })
        };
        let within = frames.iter().filter_map(round).collect();
        Error::HostLoop(Box::new(HostLoopError { cause, within, doing: doing.into() }))
    }
}
