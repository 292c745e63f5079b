//! The task on the device, as plain launches and as a graph. Each has plates of its own.

use cuda_graph::{ContextExt, Graph, MemcpyNode, Node};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::{LaunchConfig, kernel, per, per_2d};

use crate::plate::{COEFFICIENT, HOT, Task};
use crate::reference;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

kernel! {
    // SAFETY: the kernels have these parameters. Each thread of a step writes its own cell, if that
    // is on the plate, and the difference is one number.
    unsafe in "../../../kernels/heat.ptx";

    struct Kernels;
    fn heat_step(width: u32, height: u32, coefficient: f32, from: In<f32>, to: Out<f32>)
    where from.len() >= width * height, to.len() >= width * height;
    fn heat_difference(count: u32, first: In<f32>, second: In<f32>, largest: InOut<u32>)
    where first.len() >= count, second.len() >= count, largest.len() >= 1;
}

/// Two plates that take turns, and the records of them.
pub(crate) struct Plates {
    first: Buffer<f32>,
    second: Buffer<f32>,
    records: Buffer<f32>,
    /// The bits of a float, as the kernel leaves them.
    change: Buffer<u32>,
}

impl Plates {
    /// The plate that a step reads, and the one that it writes.
    fn turn(&self, step: usize) -> (&Buffer<f32>, &Buffer<f32>) {
        if step.is_multiple_of(2) { (&self.first, &self.second) } else { (&self.second, &self.first) }
    }

    pub(crate) fn read(&self, stream: &Stream) -> Outcome<reference::State> {
        let change = self.change.read_blocking(stream)?;
        Ok(reference::State {
            plate: self.first.read_blocking(stream)?,
            records: self.records.read_blocking(stream)?,
            change: change.first().copied().map_or(f32::NAN, f32::from_bits),
        })
    }
}

pub(crate) struct Simulation {
    task: Task,
    context: Context,
    stream: Stream,
    kernels: Kernels,
}

impl Simulation {
    pub(crate) fn new(task: Task, context: &Context) -> Outcome<Self> {
        Ok(Self {
            task,
            context: context.clone(),
            stream: context.stream()?,
            // Waiting at their entry, so that shaping can overlap them.
            kernels: Kernels::load_waiting(context)?,
        })
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn plates(&self) -> Outcome<Plates> {
        let start = self.task.start();
        Ok(Plates {
            first: self.stream.upload(&start)?,
            second: self.stream.upload(&start)?,
            records: self.stream.zeros(self.task.records() * self.task.size)?,
            change: self.stream.zeros(1)?,
        })
    }

    fn step_config(&self) -> LaunchConfig {
        per_2d((self.task.size, self.task.size), (32, 8))
    }

    fn difference_config(&self) -> LaunchConfig {
        per(self.task.cells(), 256)
    }

    /// One round as plain launches.
    pub(crate) fn launch(&self, plates: &Plates) -> Outcome<()> {
        let size = self.task.size as u32;
        for step in 0..self.task.steps {
            let (from, to) = plates.turn(step);
            self.stream.fill(from.slice(self.task.bar(step))?, HOT)?;
            let arguments = (size, size, COEFFICIENT, from, to);
            self.kernels.heat_step.launch(&self.stream, self.step_config(), arguments)?;
            if let Some(record) = self.task.record(step) {
                self.stream.copy(to.slice(self.task.recorded_row())?, plates.records.slice(record)?)?;
            }
        }
        self.stream.fill(&plates.change, 0)?;
        let arguments = (self.task.cells() as u32, &plates.first, &plates.second, &plates.change);
        Ok(self.kernels.heat_difference.launch(&self.stream, self.difference_config(), arguments)?)
    }

    /// One round as a graph. Records are copied beside the steps: only the step that would
    /// overwrite a plate waits for its copy.
    pub(crate) fn graph(&self, plates: &Plates) -> Outcome<Graph> {
        let size = self.task.size as u32;
        let graph = self.context.graph()?;
        let mut last: Option<Node> = None;
        let mut copies: [Option<MemcpyNode>; 2] = [None, None];
        for step in 0..self.task.steps {
            let (from, to) = plates.turn(step);
            let at = last.as_ref().map_or_else(|| graph.root(), |node| node.then());
            let bar = at.fill(from.slice(self.task.bar(step))?, HOT)?.named(format!("bar {step}"));
            let copied = copies[step % 2].take();
            let at = match &copied {
                Some(copy) => graph.after([&*bar, &**copy])?,
                None => bar.then(),
            };
            let arguments = (size, size, COEFFICIENT, from, to);
            let node = at.launch(&self.kernels.heat_step, self.step_config(), arguments)?;
            let node = node.named(format!("step {step}"));
            if let Some(record) = self.task.record(step) {
                let row = to.slice(self.task.recorded_row())?;
                copies[step % 2] = Some(node.then().copy(row, plates.records.slice(record)?)?);
            }
            last = Some((*node).clone());
        }
        let clear = graph.root().fill(&plates.change, 0)?;
        if let Some(last) = &last {
            let arguments = (self.task.cells() as u32, &plates.first, &plates.second, &plates.change);
            let at = graph.after([last, &*clear])?;
            at.launch(&self.kernels.heat_difference, self.difference_config(), arguments)?;
        }
        Ok(graph)
    }
}
