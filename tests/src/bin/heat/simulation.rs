//! The task on the device, as plain launches and as a graph. Each has plates of its own.

use cuda_graph::{ContextExt, Graph, MemcpyNode, Node};
use cuda_handles::{Buffer, Context, Image, Kernel, Library, Stream};
use cuda_launch::{Launch, LaunchConfig, params, per, per_2d};

use crate::plate::{COEFFICIENT, HOT, Task};
use crate::reference;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const IMAGE: &str = include_str!("../../../kernels/heat.ptx");

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
    step: Kernel,
    difference: Kernel,
}

impl Simulation {
    pub(crate) fn new(task: Task, context: &Context) -> Outcome<Self> {
        let library = Library::load(context, Image::Ptx(IMAGE))?;
        Ok(Self {
            task,
            context: context.clone(),
            stream: context.stream()?,
            step: library.kernel("heat_step")?,
            difference: library.kernel("heat_difference")?,
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
            let arguments = params![size, size, COEFFICIENT, from, to];
            // SAFETY: the arguments are those that the kernel declares, and both plates have the
            // cells that it is told of.
            unsafe { self.step.launch(&self.stream, self.step_config(), &arguments)? };
            if let Some(record) = self.task.record(step) {
                self.stream.copy(to.slice(self.task.recorded_row())?, plates.records.slice(record)?)?;
            }
        }
        self.stream.fill(&plates.change, 0)?;
        let arguments = params![self.task.cells() as u32, &plates.first, &plates.second, &plates.change];
        // SAFETY: as above; the result is one word.
        unsafe { self.difference.launch(&self.stream, self.difference_config(), &arguments)? };
        Ok(())
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
            let arguments = params![size, size, COEFFICIENT, from, to];
            // SAFETY: the arguments are those that the kernel declares, and both plates have the
            // cells that it is told of.
            let node = unsafe { at.launch_untyped(&self.step, self.step_config(), &arguments)? };
            let node = node.named(format!("step {step}"));
            if let Some(record) = self.task.record(step) {
                let row = to.slice(self.task.recorded_row())?;
                copies[step % 2] = Some(node.then().copy(row, plates.records.slice(record)?)?);
            }
            last = Some((*node).clone());
        }
        let clear = graph.root().fill(&plates.change, 0)?;
        if let Some(last) = &last {
            let arguments = params![self.task.cells() as u32, &plates.first, &plates.second, &plates.change];
            // SAFETY: as above; the result is one word.
            unsafe {
                graph.after([last, &*clear])?.launch_untyped(
                    &self.difference,
                    self.difference_config(),
                    &arguments,
                )?
            };
        }
        Ok(graph)
    }
}
