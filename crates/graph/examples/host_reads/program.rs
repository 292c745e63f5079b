//! The program: a plate with a heater along its upper edge, a sensor below it, and a host function
//! that reads the sensor and sets the heater.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_graph::{ContextExt, Frontier, Graph, GraphExec, KernelNode};
use cuda_handles::{Buffer, Context, SharedHostBuffer, Stream};
use cuda_launch::{kernel, per_2d};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

kernel! {
    // SAFETY: the kernel in the file has these parameters, and accesses cells below `width *
    // height`.
    unsafe in "../kernels/heat_loop.ptx";

    fn heat_step(width: u32, height: u32, coefficient: f32, from: In<f32>, to: Out<f32>)
    where from.len() >= width * height, to.len() >= width * height;
}

/// The share of heat that a cell takes from its neighbours in a step; stable up to a quarter.
pub(crate) const COEFFICIENT: f32 = 0.24;

/// A plate, and the goal of the thermostat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Rounds of two steps in a launch.
    pub(crate) rounds: usize,
    /// The heater is on while the sensor has less.
    pub(crate) goal: f32,
    /// The temperature of the heater when it is on; 0 when it is off.
    pub(crate) hot: f32,
}

impl Task {
    pub(crate) fn cells(self) -> usize {
        self.width * self.height
    }

    /// The cell of the sensor: a quarter of the way down, in the middle.
    pub(crate) fn sensor(self) -> usize {
        self.height / 4 * self.width + self.width / 2
    }

    /// The temperature of the heater for a reading of the sensor.
    pub(crate) fn decide(self, sensor: f32) -> f32 {
        if sensor < self.goal { self.hot } else { 0.0 }
    }
}

/// A reading of the host function after a launch, and its decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) sensor: f32,
    pub(crate) heater: f32,
}

/// The graph, and the readings of its host function.
pub(crate) struct Thermostat {
    graph: Graph,
    executable: GraphExec,
    stream: Stream,
    readings: Arc<Mutex<Vec<Reading>>>,
}

/// Kernels and memory of the graph.
struct Parts {
    task: Task,
    step: heat_step,
    /// Two plates used in turn; a round begins and ends on the first.
    plates: [Buffer<f32>; 2],
    /// Pinned memory: a row of cells, and one cell.
    heater: SharedHostBuffer<f32>,
    sensor: SharedHostBuffer<f32>,
}

impl Thermostat {
    /// Builds the graph. After each launch the driver calls `report` with its number, from 1 on.
    pub(crate) fn new(
        context: &Context,
        task: Task,
        report: impl Fn(usize, Reading) + Send + Sync + 'static,
    ) -> Result<Self> {
        let stream = context.stream()?;
        let mut heater = context.pinned_zeros(task.width)?;
        heater.fill(task.decide(0.0));
        let parts = Parts {
            task,
            step: heat_step::load(context)?,
            plates: [stream.zeros(task.cells())?, stream.zeros(task.cells())?],
            heater: heater.share(),
            sensor: context.pinned_zeros(1)?.share(),
        };
        let readings = Arc::default();
        let graph = parts.graph(context, &readings, report)?;
        let executable = graph.instantiate()?;
        Ok(Self { graph, executable, stream, readings })
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Enqueues launches, each by one driver call, waits for the last one, and returns the readings
    /// of the host function.
    pub(crate) fn run(&mut self, replays: usize) -> Result<Vec<Reading>> {
        for _ in 0..replays {
            self.executable.launch(&self.stream)?;
        }
        self.stream.synchronize_blocking()?;
        Ok(std::mem::take(&mut *self.readings.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Parts {
    fn graph(
        &self,
        context: &Context,
        readings: &Arc<Mutex<Vec<Reading>>>,
        report: impl Fn(usize, Reading) + Send + Sync + 'static,
    ) -> Result<Graph> {
        let graph = context.graph()?;
        let [first, second] = &self.plates;
        let edge = first.slice(..self.task.width)?;
        let heated = graph.root().copy(&self.heater, edge)?.named("the heater's row");
        let mut last = self.step(&heated.then(), first, second)?;
        for round in 0..self.task.rounds {
            if round > 0 {
                last = self.step(&last.then(), first, second)?;
            }
            last = self.step(&last.then(), second, first)?;
        }
        let cell = self.task.sensor();
        let measured = last.then().copy(first.slice(cell..=cell)?, &self.sensor)?.named("the sensor's cell");

        let (task, readings) = (self.task, Arc::clone(readings));
        // The copies of the graph write and read the memory of these views: those before this node
        // are done, and those of the next launch come after it.
        let decide = measured.then().host_with((&self.sensor, &self.heater), move |(sensor, heater)| {
            let sensor = sensor.get(0).unwrap_or(f32::NAN);
            let reading = Reading { sensor, heater: task.decide(sensor) };
            let is_set = (0..heater.len()).all(|cell| heater.set(cell, reading.heater).is_ok());
            debug_assert!(is_set, "every cell of the row is in it");
            let mut readings = readings.lock().unwrap_or_else(PoisonError::into_inner);
            readings.push(reading);
            report(readings.len(), reading);
        })?;
        decide.named("the thermostat");
        Ok(graph)
    }

    fn step(
        &self,
        at: &Frontier<'_>,
        from: &Buffer<f32>,
        to: &Buffer<f32>,
    ) -> cuda_graph::Result<KernelNode> {
        let (width, height) = (self.task.width as u32, self.task.height as u32);
        let config = per_2d((self.task.width, self.task.height), (16, 16));
        at.launch(&self.step, config, (width, height, COEFFICIENT, from, to))
    }
}
