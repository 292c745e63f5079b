//! The program, all in one graph: copies a plate in, lets heat flow until it settles, and copies
//! the plate out.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cuda_graph::{ContextExt, Frontier, Graph, GraphExec, KernelNode, Test};
use cuda_handles::{Buffer, Context, Event, GraphBuffer, SharedHostBuffer, Stream};
use cuda_launch::{LaunchConfig, kernel, per, per_2d};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

kernel! {
    // SAFETY: the kernels in the file have these parameters. The first and second access cells
    // below `width * height`; the second also writes one number for each block, and has room for
    // 256 threads. The third has the same room, and reads the first `count` numbers.
    unsafe in "../kernels/heat_loop.ptx";

    fn heat_step(width: u32, height: u32, coefficient: f32, from: In<f32>, to: Out<f32>)
    where from.len() >= width * height, to.len() >= width * height;

    fn heat_changes(width: u32, height: u32, coefficient: f32, plate: In<f32>, largest: Out<f32>)
    where plate.len() >= width * height, largest.len() >= grid.product(), grid.y == 1,
        grid.z == 1, block.x == 256, block.product() == 256;

    fn heat_residual(count: u32, numbers: In<f32>, residual: Out<f32>)
    where count <= 1_000_000, numbers.len() >= count, residual.len() >= 1,
        grid.product() == 1, block.x == 256, block.product() == 256;
}

/// The share of heat that a cell takes from its neighbours in a step; stable up to a quarter.
pub(crate) const COEFFICIENT: f32 = 0.24;

/// The size of the plates, and when they are done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// A plate is settled if one more step would change no cell by more.
    pub(crate) tolerance: f32,
    /// The most rounds of two steps.
    pub(crate) most_rounds: u64,
}

impl Task {
    pub(crate) fn cells(self) -> usize {
        self.width * self.height
    }
}

/// The results of a launch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) plate: Vec<f32>,
    /// The largest change of a cell that one more step would make.
    pub(crate) residual: f32,
    pub(crate) rounds: u64,
}

/// The graph, with the memory and events to feed it and to read its results.
pub(crate) struct HeatLoop {
    graph: Graph,
    executable: GraphExec,
    /// The stream of launches, and the one for copies between the host's memory and the staging
    /// buffers.
    stream: Stream,
    copies: Stream,
    events: Events,
    staging: Staging,
}

/// The events by which the two streams wait for each other.
struct Events {
    loaded: Event,
    started: Event,
    finished: Event,
}

/// Pinned memory that the graph copies from and to.
struct Staging {
    plate_in: SharedHostBuffer<f32>,
    plate_out: SharedHostBuffer<f32>,
    residual: SharedHostBuffer<f32>,
    rounds: SharedHostBuffer<u64>,
}

/// Kernels and memory of the graph on the device.
struct Device {
    task: Task,
    step: heat_step,
    changes: heat_changes,
    largest: heat_residual,
    /// Two plates used in turn; a round begins and ends on the first.
    plates: [Buffer<f32>; 2],
    residual: Buffer<f32>,
}

impl HeatLoop {
    /// Builds the graph. At the end of each launch the driver calls `report` with its number, from
    /// 1 on.
    pub(crate) fn new(
        context: &Context,
        task: Task,
        report: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<Self> {
        let stream = context.stream()?;
        let events =
            Events { loaded: context.event()?, started: context.event()?, finished: context.event()? };
        let staging = Staging {
            plate_in: context.pinned_zeros(task.cells())?.share(),
            plate_out: context.pinned_zeros(task.cells())?.share(),
            residual: context.pinned_zeros(1)?.share(),
            rounds: context.pinned_zeros(1)?.share(),
        };
        let device = Device {
            task,
            step: heat_step::load(context)?,
            changes: heat_changes::load(context)?,
            largest: heat_residual::load(context)?,
            plates: [stream.zeros(task.cells())?, stream.zeros(task.cells())?],
            residual: stream.zeros(1)?,
        };
        let graph = device.graph(context, &events, &staging, report)?;
        let executable = graph.instantiate()?;
        Ok(Self { graph, executable, stream, copies: context.stream()?, events, staging })
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Stages a plate for the next launches, once the earlier ones have ended.
    pub(crate) fn load(&self, plate: &[f32]) -> Result<()> {
        self.copies.wait(&self.events.finished)?;
        self.staging.plate_in.write_blocking(&self.copies, plate)?;
        Ok(self.copies.record(&self.events.loaded)?)
    }

    /// Launches the graph by one driver call, without waiting.
    pub(crate) fn launch(&mut self) -> Result<()> {
        Ok(self.executable.launch(&self.stream)?)
    }

    /// Waits for the last launch, and reads its results.
    pub(crate) fn outcome(&self) -> Result<Outcome> {
        self.copies.wait(&self.events.finished)?;
        let (residual, rounds) = (&self.staging.residual, &self.staging.rounds);
        Ok(Outcome {
            plate: self.staging.plate_out.read_blocking(&self.copies)?,
            residual: residual.read_blocking(&self.copies)?.first().copied().unwrap_or(f32::NAN),
            rounds: rounds.read_blocking(&self.copies)?.first().copied().unwrap_or_default(),
        })
    }

    pub(crate) fn run(&mut self, plate: &[f32]) -> Result<Outcome> {
        self.load(plate)?;
        self.launch()?;
        self.outcome()
    }

    /// The time that the last launch took on the device. It has to be over.
    pub(crate) fn duration(&self) -> Result<Duration> {
        Ok(self.events.finished.elapsed_since(&self.events.started)?)
    }
}

impl Device {
    fn graph(
        &self,
        context: &Context,
        events: &Events,
        staging: &Staging,
        report: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<Graph> {
        let two_steps = self.two_steps(context)?;
        let graph = context.graph()?;
        let loaded = graph.root().wait(&events.loaded)?.named("the plate is loaded");
        let started = loaded.then().record(&events.started)?.named("started");
        let plate_in = started.then().copy(&staging.plate_in, &self.plates[0])?.named("plate in");
        let (scratch, largest) = started.then().alloc::<f32>(self.blocks())?;
        let scratch = scratch.named("scratch");
        let before = self.measure(&graph.after([&*plate_in, &*scratch])?, &largest)?;

        let unsettled = Test::greater(&self.residual, self.task.tolerance).limit(self.task.most_rounds);
        let settling = before.then().while_loop(unsettled, |body| {
            let steps = body.root().child(&two_steps)?.named("two steps");
            self.measure(&steps.then(), &largest)
        })?;
        let settling = settling.named("settling");

        let freed = settling.then().free(&largest)?.named("scratch is free");
        let plate = settling.then().copy(&self.plates[0], &staging.plate_out)?.named("plate out");
        let residual = settling.then().copy(&self.residual, &staging.residual)?.named("residual out");
        let rounds = settling.then().copy(settling.rounds_done(), &staging.rounds)?.named("rounds out");
        let out = graph.after([&*plate, &*residual, &*rounds])?.empty()?.named("all is out");
        let launches = AtomicU64::new(0);
        let report =
            out.then().host(move || report(launches.fetch_add(1, Ordering::Relaxed) + 1))?.named("report");
        graph.after([&*report, &*freed])?.record(&events.finished)?.named("finished");
        Ok(graph)
    }

    /// A graph of two steps: from the first plate to the second, and back.
    fn two_steps(&self, context: &Context) -> Result<Graph> {
        let graph = context.graph()?;
        let [first, second] = &self.plates;
        let forth = self.step(&graph.root(), first, second)?.named("forth");
        self.step(&forth.then(), second, first)?.named("back");
        Ok(graph)
    }

    fn step(
        &self,
        at: &Frontier<'_>,
        from: &Buffer<f32>,
        to: &Buffer<f32>,
    ) -> cuda_graph::Result<KernelNode> {
        let (width, height) = self.extent();
        let config = per_2d((self.task.width, self.task.height), (16, 16));
        at.launch(&self.step, config, (width, height, COEFFICIENT, from, to))
    }

    /// The largest change of the next step, by two kernels: one for each block, and one over all
    /// blocks.
    fn measure(&self, at: &Frontier<'_>, largest: &GraphBuffer<f32>) -> cuda_graph::Result<KernelNode> {
        let (width, height) = self.extent();
        let changes = at.launch(
            &self.changes,
            self.measuring(),
            (width, height, COEFFICIENT, &self.plates[0], largest),
        )?;
        changes.then().launch(&self.largest, per(1, 256), (self.blocks() as u32, largest, &self.residual))
    }

    fn measuring(&self) -> LaunchConfig {
        per(self.task.cells(), 256)
    }

    fn blocks(&self) -> usize {
        self.task.cells().div_ceil(256)
    }

    fn extent(&self) -> (u32, u32) {
        (self.task.width as u32, self.task.height as u32)
    }
}
