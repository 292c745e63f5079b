//! Graphs whose nodes run on two devices.

mod batches;
mod by_hand;
mod caches;
mod captured;
mod each_its_own;
mod lifetimes;
mod looked_at;
mod outside;
mod pools;
mod refused;
mod states;
mod updated;

use cuda_graph::{ContextExt, Graph};
use cuda_handles::{Buffer, Context, Image, Stream};
use cuda_launch::kernel;
use cuda_tests::{Kind, SMALL, SOON, Setup, live, no_leaks, other_device, settle, setup, until};

const LEN: usize = 64;
const N: u32 = LEN as u32;

kernel! {
    // SAFETY: the kernels in the image have these parameters, and each thread touches the elements
    // of its own number, if that is below `n`.
    unsafe in Image::Ptx(SMALL);

    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
    fn offset_copy(from: In<u32>, to: Out<u32>, add: u32, n: u32) where from.len() >= n, to.len() >= n;
}

/// Two devices: a context, a stream, plain memory and a kernel of each.
struct Two {
    here: Setup,
    there: Context,
    streams: [Stream; 2],
    memory: [Buffer<u32>; 2],
    increments: [increment; 2],
}

/// Runs a section, and then asserts that another run of it leaves nothing. From the first run on,
/// the reaper keeps a stream of each device, and streams that were waited for an event.
pub(crate) fn leaves_nothing(section: impl Fn()) {
    let before = live();
    section();
    // What the driver lets go of late would be missing after the second run.
    let late = [Kind::Exec, Kind::UserObject, Kind::Pinned];
    let is_gone = || {
        settle();
        late.iter().all(|kind| live().of(*kind) <= before.of(*kind))
    };
    assert!(until(SOON, is_gone), "left behind: {}", live().since(&before));
    no_leaks(section);
}

impl Two {
    /// After `needs!(TwoDevices)`.
    fn new() -> Self {
        let here = setup();
        let there = other_device().context().unwrap();
        let contexts = [&*here, &there];
        let streams = contexts.map(|context| context.stream().unwrap());
        let memory = contexts.map(|context| context.alloc_blocking::<u32>(LEN).unwrap());
        let increments = contexts.map(|context| increment::load(context).unwrap());
        let two = Self { streams, memory, increments, there, here };
        two.reset();
        two
    }

    fn graph(&self) -> Graph {
        self.here.graph_spanning(&[&self.there]).unwrap()
    }

    /// The numbers of both devices.
    fn numbers(&self) -> [usize; 2] {
        [&*self.here, &self.there].map(|context| context.device().ordinal())
    }

    /// That a capture of the second device's stream is not for a graph of the first.
    fn is_not_of_the_graph(&self) -> String {
        let [own, other] = self.numbers();
        format!(
            "a stream of the capture belongs to the context of device {other}, the graph to the context of \
             device {own}; make the graph for both (`Graph::spanning`)"
        )
    }

    /// Lets kernels of the first device use plain memory of the second.
    fn reach(&self) {
        self.here.enable_peer_access(&self.there).unwrap();
    }

    /// Makes the memory of both devices 0 again.
    fn reset(&self) {
        for (stream, memory) in self.streams.iter().zip(&self.memory) {
            stream.fill(memory, 0).unwrap();
            stream.synchronize_blocking().unwrap();
        }
    }

    /// Other memory of a device, all 0.
    fn more(&self, device: usize) -> Buffer<u32> {
        let context = [&*self.here, &self.there][device];
        let memory = context.alloc_blocking::<u32>(LEN).unwrap();
        self.streams[device].fill(&memory, 0).unwrap();
        self.streams[device].synchronize_blocking().unwrap();
        memory
    }

    /// The first element of memory, read on a stream of its device.
    fn first(&self, device: usize, memory: &Buffer<u32>) -> u32 {
        let values = memory.read_blocking(&self.streams[device]).unwrap();
        assert_eq!(values, [values[0]; LEN]);
        values[0]
    }
}
