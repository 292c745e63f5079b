//! The program: a graph that spans two devices.
//!
//! Each device has half of the rows, and one more: a copy of the other half's nearest row, its
//! *halo*. The kernel leaves the first and the last row of a plate as they are, so it computes all
//! rows but the plate's border and the halo. A step waits for the one before on its device, and for
//! the halo.
//!
//! ```text
//!   device 0   step ──► step ──► …
//!                 \ /      \ /            edges, copied both ways
//!   device 1   step ──► step ──► …
//! ```

use std::error::Error;

use cuda_graph::{Graph, GraphExec, Node};
use cuda_handles::{Buffer, Context, Slice, Stream};
use cuda_launch::{kernel, per_2d};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

kernel! {
    // SAFETY: the kernel in the file has these parameters, and accesses cells below
    // `width * height`.
    unsafe in "../kernels/heat_loop.ptx";

    fn heat_step(width: u32, height: u32, coefficient: f32, from: In<f32>, to: Out<f32>)
    where from.len() >= width * height, to.len() >= width * height;
}

/// The share of heat that a cell takes from its neighbours in a step; stable up to a quarter.
pub(crate) const COEFFICIENT: f32 = 0.24;

/// The size of the plate, an even number of rows, and the work of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// The rounds of two steps, from one plate to another and back.
    pub(crate) rounds: usize,
}

impl Task {
    pub(crate) fn steps(self) -> usize {
        2 * self.rounds
    }

    /// The cells of a half, without its halo.
    fn half(self) -> usize {
        self.width * self.height / 2
    }
}

/// One device with its half of the plate, the upper or the lower one.
struct Half {
    task: Task,
    is_upper: bool,
    stream: Stream,
    step: heat_step,
    /// Two plates used in turn; a launch begins and ends on the first.
    plates: [Buffer<f32>; 2],
}

/// The graph, with the memory of both devices.
pub(crate) struct TwoDevices {
    graph: Graph,
    executable: GraphExec,
    halves: [Half; 2],
}

impl TwoDevices {
    pub(crate) fn new([upper, lower]: [&Context; 2], task: Task) -> Result<Self> {
        let halves = [Half::new(upper, task, true)?, Half::new(lower, task, false)?];
        let graph = Graph::spanning(upper, &[lower])?;
        draw(&graph, &halves, task)?;
        let executable = graph.instantiate()?;
        Ok(Self { graph, executable, halves })
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Gives each device its rows of a plate, with the halo.
    pub(crate) fn load(&self, plate: &[f32]) -> Result<()> {
        let (cells, width) = (self.halves[0].task.half(), self.halves[0].task.width);
        let rows = [&plate[..cells + width], &plate[cells - width..]];
        for (half, rows) in self.halves.iter().zip(rows) {
            for plate in &half.plates {
                plate.write_blocking(&half.stream, rows)?;
            }
        }
        Ok(())
    }

    /// Launches the graph on a stream of one of the devices, without waiting.
    pub(crate) fn launch(&mut self, device: usize) -> Result<()> {
        Ok(self.executable.launch(&self.halves[device].stream)?)
    }

    /// Waits for all launches, and puts the plate together.
    pub(crate) fn plate(&self) -> Result<Vec<f32>> {
        // The last launch may be on the other's stream.
        let [upper, lower] = &self.halves;
        upper.stream.wait_for(&lower.stream)?;
        lower.stream.wait_for(&upper.stream)?;
        let mut plate = upper.rows().read_blocking(&upper.stream)?;
        plate.extend(lower.rows().read_blocking(&lower.stream)?);
        Ok(plate)
    }
}

/// The nodes of a step, for the next one to wait for: the kernel of a half, and its halo.
type Step = [Option<[Node; 2]>; 2];

fn draw(graph: &Graph, halves: &[Half; 2], task: Task) -> Result<()> {
    let mut before: Step = [None, None];
    for step in 0..task.steps() {
        let (from, to) = (step % 2, (step + 1) % 2);
        let mut kernels = Vec::with_capacity(2);
        for (half, before) in halves.iter().zip(&before) {
            let at = match before {
                None => graph.root(),
                Some([kernel, halo]) => graph.after([kernel, halo])?,
            };
            kernels.push(half.add_step(at, from, to)?);
        }
        for (number, half) in halves.iter().enumerate() {
            let other = &halves[1 - number];
            let [own, far] = [&kernels[number], &kernels[1 - number]];
            let halo = graph.after([own, far])?.copy(other.edge(to), half.halo(to))?;
            before[number] = Some([own.clone(), (*halo).clone()]);
        }
    }
    Ok(())
}

impl Half {
    fn new(context: &Context, task: Task, is_upper: bool) -> Result<Self> {
        let cells = task.half() + task.width;
        Ok(Self {
            task,
            is_upper,
            stream: context.stream()?,
            step: heat_step::load(context)?,
            plates: [context.alloc_blocking(cells)?, context.alloc_blocking(cells)?],
        })
    }

    fn add_step(&self, at: cuda_graph::Frontier<'_>, from: usize, to: usize) -> Result<Node> {
        let Task { width, height, .. } = self.task;
        let rows = height / 2 + 1;
        let name = if self.is_upper { "upper" } else { "lower" };
        let config = per_2d((width, rows), (16, 16));
        let arguments = (width as u32, rows as u32, COEFFICIENT, &self.plates[from], &self.plates[to]);
        Ok((*at.launch(&self.step, config, arguments)?.named(name)).clone())
    }

    /// The rows that are its own.
    fn rows(&self) -> Slice<'_, f32> {
        let first = if self.is_upper { 0 } else { self.task.width };
        part(&self.plates[0], first, self.task.half())
    }

    /// Its row next to the other half.
    fn edge(&self, plate: usize) -> Slice<'_, f32> {
        let first = if self.is_upper { self.task.half() - self.task.width } else { self.task.width };
        part(&self.plates[plate], first, self.task.width)
    }

    /// The place of the other half's edge.
    fn halo(&self, plate: usize) -> Slice<'_, f32> {
        let first = if self.is_upper { self.task.half() } else { 0 };
        part(&self.plates[plate], first, self.task.width)
    }
}

/// Cells of a plate, which has them.
fn part(plate: &Buffer<f32>, first: usize, cells: usize) -> Slice<'_, f32> {
    plate.slice(first..first + cells).unwrap_or_else(|_| plate.as_slice())
}
