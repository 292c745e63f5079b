//! A running level with programmatic edges, and its kernels that have begun.

use std::collections::HashMap;

use super::access_log::{EarlyAccesses, Watcher};
use super::early_order::{Action, EarlyOrder};
use crate::device::loss::Loss;
use crate::driver;
use crate::graph::model::program::{Level, Program};
use crate::launch::{KernelRun, Watch};
use crate::ptx::BegunGrid;

/// The most threads of a level that wait for kernels in front, rounded up to a block.
const MOST_WAITING: u64 = 1 << 16;

pub(super) struct EarlyLevel<'a> {
    order: EarlyOrder<'a>,
    begun: HashMap<usize, BegunGrid>,
    /// How many more threads may wait.
    room: u64,
    /// The accesses that kernels behind others made before these had ended.
    accesses: Vec<EarlyAccesses>,
}

impl<'a> EarlyLevel<'a> {
    pub(super) fn new(level: &Level, program: &'a Program) -> Self {
        let order = EarlyOrder::new(level, &program.steps, driver::config().early_seed);
        Self { order, begun: HashMap::new(), room: MOST_WAITING, accesses: Vec::new() }
    }

    /// The next action.
    pub(super) fn next(&mut self) -> Option<Action> {
        self.order.next()
    }

    /// A step that is no kernel, or is disabled, runs as a whole and waits for nothing.
    pub(super) fn pass(&mut self, step: usize) {
        self.order.ended(step);
        self.forget_accesses();
    }

    /// Runs a kernel as far as the action says. An access before its turn is a loss.
    pub(super) fn run_kernel(&mut self, action: Action, node: u64, run: KernelRun<'_>) -> Result<(), Loss> {
        let step = action.step();
        let kernel = &run.function.code.kernel;
        if matches!(action, Action::Begin(_)) && kernel.waits_at_entry() {
            self.begun.insert(step, BegunGrid::default());
            self.order.begun(step);
            return Ok(());
        }
        let before = self.order.unended_before(step);
        let watcher = Watcher::of(step, &before, &self.accesses);
        let watch = watcher.as_ref().map(|watcher| watcher as &dyn Watch);
        let run = KernelRun { watch, ..run };
        let left = match action {
            Action::Begin(_) => Some(run.begin(self.room)?).filter(|begun| !begun.has_ended()),
            Action::Run(_) => run.run().map(|()| None)?,
            Action::Finish(_) => {
                let begun = self.begun.remove(&step).unwrap_or_default();
                self.room += begun.threads();
                run.finish(begun).map(|()| None)?
            }
        };
        let name = || format!("kernel `{}` (graph node {node:#x})", kernel.name());
        let kept = watcher.and_then(|watcher| watcher.into_accesses(step, name(), before));
        self.accesses.extend(kept);
        match left {
            Some(begun) => {
                self.room = self.room.saturating_sub(begun.threads());
                self.begun.insert(step, begun);
                self.order.begun(step);
            }
            None => self.pass(step),
        }
        Ok(())
    }

    /// Forgets accesses that no later one can be wrong about.
    fn forget_accesses(&mut self) {
        let order = &self.order;
        self.accesses.retain(|early| {
            !order.has_ended(early.step) || early.before.iter().any(|step| !order.has_ended(*step))
        });
    }
}
