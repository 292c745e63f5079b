//! The program: a machine for rows of numbers. A launch takes the next instruction from memory and
//! branches by its number.

use std::error::Error;

use cuda_graph::{ContextExt, Graph, GraphExec};
use cuda_handles::{Buffer, Context, SharedHostBuffer, Stream};
use cuda_launch::{LaunchConfig, kernel, per};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Threads of a block that sums; the kernels have room for this many.
pub(crate) const BLOCK: u32 = 128;

kernel! {
    // SAFETY: the kernels in the file have these parameters. Each thread accesses numbers below
    // `n`. Kernels with blocks of 128 threads, for which they have room, also access the sums of
    // blocks below the number of blocks. `fetch` accesses instructions below `count`.
    unsafe in "../kernels/dispatch.ptx";

    fn fetch(count: u32, instructions: In<u32>, next: InOut<u32>, branch: ConditionalHandle)
    where instructions.len() >= count, next.len() >= 1, grid.product() * block.product() == 1;

    fn count_up(n: u32, numbers: Out<u32>)
    where numbers.len() >= n, grid.x * block.x >= n;

    fn scale(n: u32, factor: u32, summand: u32, numbers: InOut<u32>)
    where numbers.len() >= n, grid.x * block.x >= n, grid.y * grid.z * block.y * block.z == 1;

    fn turn_round(n: u32, from: In<u32>, to: Out<u32>)
    where from.len() >= n, to.len() >= n, grid.x * block.x >= n;

    fn sum_blocks(n: u32, numbers: InOut<u32>, sums: Out<u32>)
    where numbers.len() >= n, grid.x * block.x >= n, sums.len() >= grid.x, grid.y * grid.z == 1,
        block.x == 128, block.product() == 128;

    fn add_sums(n: u32, sums: In<u32>, numbers: InOut<u32>)
    where numbers.len() >= n, grid.x * block.x >= n, sums.len() >= grid.x, grid.y * grid.z == 1,
        block.x == 128, block.product() == 128;
}

/// The instructions by number; others do nothing.
pub(crate) const NAMES: [&str; 4] = ["odd numbers", "sums so far", "turn round", "mix the halves"];

/// The graph, with the memory to feed it and to read its results.
pub(crate) struct Dispatch {
    graph: Graph,
    executable: GraphExec,
    stream: Stream,
    machine: Machine,
    /// Pinned memory that each launch copies the numbers to.
    shown: SharedHostBuffer<u32>,
}

/// Kernels and memory of the graph on the device.
struct Machine {
    kernels: Kernels,
    instructions: Buffer<u32>,
    next: Buffer<u32>,
    numbers: Buffer<u32>,
    /// Scratch memory.
    spare: Buffer<u32>,
    sums: Buffer<u32>,
}

struct Kernels {
    fetch: fetch,
    count_up: count_up,
    scale: scale,
    turn_round: turn_round,
    sum_blocks: sum_blocks,
    add_sums: add_sums,
}

impl Dispatch {
    /// A machine for rows of `n` numbers and at most `room` instructions.
    pub(crate) fn new(context: &Context, n: usize, room: usize) -> Result<Self> {
        let stream = context.stream()?;
        let kernels = Kernels {
            fetch: fetch::load(context)?,
            count_up: count_up::load(context)?,
            scale: scale::load(context)?,
            turn_round: turn_round::load(context)?,
            sum_blocks: sum_blocks::load(context)?,
            add_sums: add_sums::load(context)?,
        };
        let machine = Machine {
            kernels,
            instructions: stream.zeros(room)?,
            // Nothing to fetch yet.
            next: stream.upload(&[room as u32])?,
            numbers: stream.zeros(n)?,
            spare: stream.zeros(n)?,
            sums: stream.zeros(n.div_ceil(BLOCK as usize))?,
        };
        let shown = context.pinned_zeros(n)?.share();
        let graph = machine.graph(context, &shown)?;
        let executable = graph.instantiate()?;
        Ok(Self { graph, executable, stream, machine, shown })
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Stages instructions for the next launches, one each, once the earlier ones have ended. The
    /// numbers stay.
    pub(crate) fn load(&self, instructions: &[u32]) -> Result<()> {
        let Machine { instructions: memory, next, .. } = &self.machine;
        let first = memory
            .len()
            .checked_sub(instructions.len())
            .ok_or("there is no room for so many instructions")?;
        memory.slice(first..)?.write_blocking(&self.stream, instructions)?;
        Ok(self.stream.fill(next, first as u32)?)
    }

    /// Launches the next instruction by one driver call, without waiting.
    pub(crate) fn launch(&mut self) -> Result<()> {
        Ok(self.executable.launch(&self.stream)?)
    }

    /// Waits for the last launch, and reads its numbers.
    pub(crate) fn numbers(&self) -> Result<Vec<u32>> {
        Ok(self.shown.read_blocking(&self.stream)?)
    }
}

impl Machine {
    fn graph(&self, context: &Context, shown: &SharedHostBuffer<u32>) -> Result<Graph> {
        let graph = context.graph()?;
        let branch = graph.condition()?;
        let fetch = (self.instructions.len() as u32, &self.instructions, &self.next, &branch);
        let fetch = graph.root().launch(&self.kernels.fetch, per(1, 1), fetch)?;
        let dispatch = fetch.then().switch_node(&branch, NAMES.len())?.named("dispatch");
        let bodies = dispatch.bodies()?;
        let fill = [Self::odd_numbers, Self::sums_so_far, Self::turn, Self::mix_the_halves];
        for (body, fill) in bodies.iter().zip(fill) {
            fill(self, body)?;
        }
        dispatch.then().copy(&self.numbers, shown)?.named("numbers out");
        Ok(graph)
    }

    fn odd_numbers(&self, body: &Graph) -> Result<()> {
        let count =
            body.root().launch(&self.kernels.count_up, self.per_number(), (self.n(), &self.numbers))?;
        let scale = (self.n(), 2, u32::MAX, &self.numbers);
        count.then().launch(&self.kernels.scale, self.per_number(), scale)?.named("double, less 1");
        Ok(())
    }

    fn sums_so_far(&self, body: &Graph) -> Result<()> {
        let blocks = (self.n(), &self.numbers, &self.sums);
        let blocks = body.root().launch(&self.kernels.sum_blocks, self.per_number(), blocks)?;
        blocks.then().launch(
            &self.kernels.add_sums,
            self.per_number(),
            (self.n(), &self.sums, &self.numbers),
        )?;
        Ok(())
    }

    fn turn(&self, body: &Graph) -> Result<()> {
        let turn = (self.n(), &self.numbers, &self.spare);
        let turn = body.root().launch(&self.kernels.turn_round, self.per_number(), turn)?;
        turn.then().copy(&self.spare, &self.numbers)?.named("back");
        Ok(())
    }

    /// Processes the two halves concurrently, by a kernel each.
    fn mix_the_halves(&self, body: &Graph) -> Result<()> {
        let half = self.numbers.len() / 2;
        let (lower, upper) = (self.numbers.slice(..half)?, self.numbers.slice(half..)?);
        let scale = &self.kernels.scale;
        let arguments = (lower.len() as u32, 3, 1, lower);
        let lower = body.root().launch(scale, per(lower.len(), BLOCK), arguments)?.named("lower half");
        let arguments = (upper.len() as u32, 5, 2, upper);
        let upper = body.root().launch(scale, per(upper.len(), BLOCK), arguments)?.named("upper half");
        let turn = (self.n(), &self.numbers, &self.spare);
        let turn =
            body.after([&*lower, &*upper])?.launch(&self.kernels.turn_round, self.per_number(), turn)?;
        turn.then().copy(&self.spare, &self.numbers)?.named("back");
        Ok(())
    }

    fn n(&self) -> u32 {
        self.numbers.len() as u32
    }

    fn per_number(&self) -> LaunchConfig {
        per(self.numbers.len(), BLOCK)
    }
}
