//! Collectives on streams and in captured graphs: NCCL on a GPU, and its stand-in on the software
//! driver. All numbers are small and whole, so that every order of additions gives the same sums.

mod captured;
mod failures;
mod groups;
mod lifetimes;

use core::ops::Deref;

use cuda_graph::{Error, Graph, Result as GraphResult, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, Device, Stream};
use cuda_tests::{Setup, is_soft, setup};
use cuda_tests_nccl::{Communicator, Error as NcclError, Group, Nccl, settle};

const LEN: usize = 300;
/// NCCL's threads may allocate memory meanwhile.
const MODE: CaptureMode = CaptureMode::ThreadLocal;

/// Runs the rest of the test in a process of its own, on two devices or more; skips it where there
/// is one, or no NCCL. On the software driver there are as many as given.
macro_rules! on_ranks {
    () => {
        on_ranks!("2")
    };
    ($soft:literal) => {{
        cuda_tests::alone!("CUDA_SOFT_DEVICES" = $soft, "NCCL_NVLS_ENABLE" = "0");
        drop(cuda_tests::setup());
        cuda_tests::needs!(TwoDevices);
        match $crate::collectives::nccl() {
            Ok(nccl) => $crate::collectives::Settling(nccl),
            Err(why) => cuda_tests::skip!("{why}"),
        }
    }};
}
pub(crate) use on_ranks;

/// NCCL. When it is dropped, at the end of a test, all communicators have ended: a process may not
/// exit while a thread is in NCCL.
pub(crate) struct Settling(pub(crate) Nccl);

impl Deref for Settling {
    type Target = Nccl;

    fn deref(&self) -> &Nccl {
        &self.0
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        settle();
    }
}

/// NCCL; on the software driver the stand-in.
pub(crate) fn nccl() -> Result<Nccl, NcclError> {
    if is_soft() { Ok(Nccl::stand_in()) } else { Nccl::load() }
}

/// Up to four devices: a context, a stream, a communicator and memory of each.
struct Ranks {
    here: Setup,
    streams: Vec<Stream>,
    communicators: Vec<Communicator>,
    /// What each rank gives, and what it gets.
    from: Vec<Buffer<f32>>,
    to: Vec<Buffer<f32>>,
}

impl Ranks {
    /// Communicators that have not been used.
    fn new(nccl: &Nccl) -> Self {
        let here = setup();
        let devices = (0..Device::count().unwrap()).map(|number| Device::new(number).unwrap());
        let others = devices.filter(|device| *device != here.device()).take(3);
        let others: Vec<Context> = others.map(|device| device.context().unwrap()).collect();
        let contexts: Vec<&Context> = [&*here].into_iter().chain(&others).collect();
        let streams = contexts.iter().map(|context| context.stream().unwrap()).collect();
        let memory = || contexts.iter().map(|context| context.alloc_blocking::<f32>(LEN).unwrap()).collect();
        let (from, to) = (memory(), memory());
        let communicators = Communicator::all(nccl, &contexts).unwrap();
        Self { streams, communicators, from, to, here }
    }

    fn count(&self) -> usize {
        self.streams.len()
    }

    fn contexts(&self) -> Vec<&Context> {
        self.streams.iter().map(Stream::context).collect()
    }

    /// Gives each rank other numbers, which depend on the round, and clears what it gets.
    fn load(&self, round: usize) {
        for (rank, stream) in self.streams.iter().enumerate() {
            self.from[rank].write_blocking(stream, &numbers(rank, round)).unwrap();
            stream.fill(&self.to[rank], -1.0).unwrap();
            stream.synchronize_blocking().unwrap();
        }
    }

    /// A group with an all-reduce of all ranks.
    fn sums(&self) -> Group<'_> {
        let mut group = Group::new();
        for (rank, communicator) in self.communicators.iter().enumerate() {
            let (from, to) = (&self.from[rank], &self.to[rank]);
            group.all_reduce_sum(communicator, &self.streams[rank], from, to);
        }
        group
    }

    /// A group in which each rank sends its numbers to the next one.
    fn ring(&self) -> Group<'_> {
        let (mut group, count) = (Group::new(), self.count());
        for (rank, communicator) in self.communicators.iter().enumerate() {
            let stream = &self.streams[rank];
            group.send(communicator, stream, &self.from[rank], (rank + 1) % count);
            group.recv(communicator, stream, &self.to[rank], (rank + count - 1) % count);
        }
        group
    }

    /// Captures a group, from the first stream, with all others drawn in and joined again.
    fn capture(&self, group: &Group<'_>) -> GraphResult<Graph> {
        self.streams[0].capture(MODE, |capture| {
            self.joined(capture.stream(), || enqueue(group))?;
            Ok(())
        })
    }

    /// Draws all streams into a capture, works, and joins them.
    fn joined(&self, first: &Stream, work: impl FnOnce() -> GraphResult<()>) -> GraphResult<()> {
        let others = &self.streams[1..];
        others.iter().try_for_each(|stream| stream.wait_for(first))?;
        work()?;
        Ok(others.iter().try_for_each(|stream| first.wait_for(stream))?)
    }

    #[track_caller]
    fn assert_sums(&self, round: usize) {
        let expected = sums(self.count(), round);
        for rank in 0..self.count() {
            assert_eq!(self.read(&self.to[rank], rank), expected, "rank {rank} in round {round}");
        }
    }

    fn read(&self, memory: &Buffer<f32>, rank: usize) -> Vec<f32> {
        memory.read_blocking(&self.streams[rank]).unwrap()
    }

    fn wait(&self) {
        self.streams.iter().for_each(|stream| stream.synchronize_blocking().unwrap());
    }
}

/// Makes the calls of a group, in a capture of this crate.
fn enqueue(group: &Group<'_>) -> GraphResult<()> {
    group.enqueue().map_err(|error| match error {
        NcclError::Handles(error) => Error::Handles(error),
        other => panic!("{other}"),
    })
}

/// The numbers of a rank in a round.
fn numbers(rank: usize, round: usize) -> Vec<f32> {
    (0..LEN).map(|index| ((index + 1) * (rank + 2) % 97 + round) as f32).collect()
}

fn sums(ranks: usize, round: usize) -> Vec<f32> {
    let add = |sums: Vec<f32>, more: Vec<f32>| sums.iter().zip(more).map(|(sum, more)| sum + more).collect();
    (0..ranks).map(|rank| numbers(rank, round)).reduce(add).unwrap_or_default()
}
