//! The program: three streams, two slots on the device, and a ring of staging buffers.

use std::collections::VecDeque;
use std::error::Error;

use cuda_graph::{ContextExt, Graph, GraphExec};
use cuda_handles::{Buffer, Context, Event, SharedHostBuffer, Stream};
use cuda_launch::{kernel, per};

use super::reference;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

kernel! {
    // SAFETY: the kernels in the file have these parameters. Each thread accesses numbers below
    // `n`, and sums of blocks below its own.
    unsafe in "../kernels/dispatch.ptx";

    fn scale(n: u32, factor: u32, summand: u32, numbers: InOut<u32>)
    where numbers.len() >= n, grid.x * block.x >= n, grid.y * grid.z * block.y * block.z == 1;

    fn add_sums(n: u32, sums: In<u32>, numbers: InOut<u32>)
    where numbers.len() >= n, grid.x * block.x >= n, sums.len() >= grid.x, grid.y * grid.z == 1,
        block.x == 128, block.product() == 128;
}

/// Rows on the device at a time, and staging buffers for rows on their way to it.
const SLOTS: usize = 2;
const STAGED: usize = 3;

/// Threads of a block.
const BLOCK: u32 = 128;

/// The pipeline, and how often the host looked for work.
pub(crate) struct Pipeline {
    n: usize,
    streams: Streams,
    /// Slots without a row, and slots with one in the order of the rows.
    free: VecDeque<Slot>,
    busy: VecDeque<Slot>,
    /// Staging buffers; the one that was sent first is in front.
    ring: VecDeque<Staged>,
    looks: u64,
    idle: u64,
}

struct Streams {
    copies_in: Stream,
    computes: Stream,
    copies_out: Stream,
}

/// A staging buffer, and the event at which the device has read it.
struct Staged {
    host: SharedHostBuffer<u32>,
    read: Event,
}

/// Room for one row on the device.
struct Slot {
    executable: GraphExec,
    numbers: Buffer<u32>,
    /// Sums that blocks add: block `i` adds the first `i`. The first is the number of the row, the
    /// others are 0.
    sums: Buffer<u32>,
    /// Pinned memory for the processed row.
    result: SharedHostBuffer<u32>,
    worked_on: Event,
    copied_out: Event,
}

impl Pipeline {
    /// A pipeline for rows of `n` numbers.
    pub(crate) fn new(context: &Context, n: usize) -> Result<Self> {
        let streams = Streams {
            copies_in: context.stream()?,
            computes: context.stream()?,
            copies_out: context.stream()?,
        };
        let free = (0..SLOTS).map(|_| Slot::new(context, &streams.computes, n)).collect::<Result<_>>()?;
        let staged = |_| Ok(Staged { host: context.pinned_zeros(n)?.share(), read: context.event()? });
        let ring = (0..STAGED).map(staged).collect::<Result<_>>()?;
        Ok(Self { n, streams, free, busy: VecDeque::new(), ring, looks: 0, idle: 0 })
    }

    /// The graph of the first slot.
    pub(crate) fn graph(&self) -> Option<Graph> {
        self.free.front().and_then(|slot| slot.executable.graph())
    }

    /// How often the host looked for work.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// How often it found none.
    pub(crate) fn idle(&self) -> u64 {
        self.idle
    }

    /// Sends rows through the pipeline, and returns the sum of each.
    pub(crate) fn run(&mut self, rows: u32) -> Result<Vec<u32>> {
        let (mut sent, mut sums) = (0, Vec::new());
        while sums.len() < rows as usize {
            self.looks += 1;
            let is_sent = sent < rows && self.send(sent)?;
            sent += u32::from(is_sent);
            let sum = self.receive()?;
            sums.extend(sum);
            if !is_sent && sum.is_none() {
                self.idle += 1;
                // A real program would do other work here.
                std::thread::yield_now();
            }
        }
        Ok(sums)
    }

    /// Sends a row, if a slot is free and a staging buffer was read.
    fn send(&mut self, row: u32) -> Result<bool> {
        let is_read = |staged: &mut Staged| staged.read.query().unwrap_or(true);
        let Some(mut slot) = self.free.pop_front() else { return Ok(false) };
        let Some(Staged { host, read }) = self.ring.pop_front_if(is_read) else {
            self.free.push_front(slot);
            return Ok(false);
        };
        // The event behind the copy was reached, so the host has the buffer to itself, although the
        // stream goes on.
        let mut host = host.try_unique().map_err(|_| "a staging buffer is in use behind its event")?;
        host.iter_mut().zip(reference::row(self.n, row)).for_each(|(to, number)| *to = number);
        let host = host.share();
        slot.enqueue(&self.streams, &host, &read, row)?;
        self.ring.push_back(Staged { host, read });
        self.busy.push_back(slot);
        Ok(true)
    }

    /// The sum of the row that was sent first, if it has come back.
    fn receive(&mut self) -> Result<Option<u32>> {
        let is_back = |slot: &mut Slot| slot.copied_out.query().unwrap_or(true);
        let Some(slot) = self.busy.pop_front_if(is_back) else { return Ok(None) };
        // Summed in place, without a copy.
        let numbers = slot.result.try_unique().map_err(|_| "a result is in use behind its event")?;
        let sum = numbers.iter().fold(0, |sum: u32, number| sum.wrapping_add(*number));
        self.free.push_back(Slot { result: numbers.share(), ..slot });
        Ok(Some(sum))
    }
}

impl Slot {
    fn new(context: &Context, computes: &Stream, n: usize) -> Result<Self> {
        let (scale, add_sums) = (scale::load(context)?, add_sums::load(context)?);
        let (numbers, sums) = (computes.zeros(n)?, computes.zeros(n.div_ceil(BLOCK as usize))?);
        let graph = context.graph()?;
        let scaled = graph.root().launch(&scale, per(n, BLOCK), (n as u32, 3, 0, &numbers))?.named("scale");
        scaled
            .then()
            .launch(&add_sums, per(n, BLOCK), (n as u32, &sums, &numbers))?
            .named("add the row's number");
        let executable = graph.instantiate()?;
        let result = context.pinned_zeros(n)?.share();
        let (worked_on, copied_out) = (context.event()?, context.event()?);
        Ok(Self { executable, numbers, sums, result, worked_on, copied_out })
    }

    /// Enqueues everything for a row: each stream waits for the one before, the host for none.
    fn enqueue(
        &mut self,
        streams: &Streams,
        staged: &SharedHostBuffer<u32>,
        read: &Event,
        row: u32,
    ) -> Result<()> {
        let Streams { copies_in, computes, copies_out } = streams;
        copies_in.copy(staged, &self.numbers)?;
        copies_in.record(read)?;
        // The four bytes are copied now; nobody has to keep them.
        computes.write(self.sums.slice(..1)?, &[row])?;
        computes.wait(read)?;
        self.executable.launch(computes)?;
        computes.record(&self.worked_on)?;
        copies_out.wait(&self.worked_on)?;
        copies_out.copy(&self.numbers, &self.result)?;
        Ok(copies_out.record(&self.copied_out)?)
    }
}
