//! Replays of a chain of eight kernels whose arguments change, by each way to change them.

mod cached;
mod copied;
mod raw;
mod rebuilt;
mod set;

use core::hint::black_box;
use std::time::Duration;

use cuda_graph::{Graph, KernelNode};
use cuda_handles::Buffer;
use cuda_launch::per;

use super::Row;
use super::launch::saxpy;
use crate::Outcome;
use crate::bench::{Bench, N};
use crate::measure::{Pair, timed};

const NODES: usize = 8;

pub(super) const FIGURES: &[Row] = &[
    ("8 nodes, unchanged", set::nothing),
    ("8 nodes, one number set", set::one_number),
    ("8 nodes, one buffer set", set::one_buffer),
    ("8 nodes, all buffers set", set::all_buffers),
    ("8 nodes through a cache, unchanged", cached::nothing),
    ("8 nodes through a cache, one buffer set", cached::one_buffer),
    ("8 nodes through a cache, all buffers set", cached::all_buffers),
    ("8 nodes through a pool, one buffer set", cached::pooled),
    ("8 nodes, arguments copied and waited for", copied::waited_for),
    ("8 nodes, arguments copied from pinned", copied::from_pinned),
    ("8 nodes, launched one by one", one_by_one),
    ("8 nodes, whole update", rebuilt::updated),
    ("8 nodes, instantiated anew", rebuilt::instantiated),
];

/// Replays between two waits: few enough that 8 launches for each fit into the queue of a device.
const SHARE: u32 = 50;

/// Times replays. The waits between the shares do not count.
#[inline]
fn replays(bench: &Bench, count: u32, mut replay: impl FnMut() -> Outcome<()>) -> Outcome<Duration> {
    let mut time = Duration::ZERO;
    let mut left = count;
    while left > 0 {
        let share = left.min(SHARE);
        time += timed(share, &mut replay)?;
        bench.settle(())?;
        left -= share;
    }
    Ok(time)
}

/// Adds a chain of kernels without graph parameters.
fn chain(bench: &Bench, graph: &Graph, kernel: &saxpy) -> Outcome<Vec<KernelNode>> {
    let mut nodes: Vec<KernelNode> = Vec::new();
    for _ in 0..NODES {
        let frontier = nodes.last().map_or_else(|| graph.root(), |node| node.then());
        nodes.push(frontier.launch(kernel, per(N as usize, N), (N, 2.0, &bench.x, &bench.y))?);
    }
    Ok(nodes)
}

/// Two buffers that take turns as an argument.
struct Turns {
    buffers: [Buffer<f32>; 2],
    turn: usize,
}

impl Turns {
    fn new(bench: &Bench) -> Outcome<Self> {
        let buffers = [bench.stream.zeros(N as usize)?, bench.stream.zeros(N as usize)?];
        bench.settle(Self { buffers, turn: 0 })
    }

    #[inline]
    fn next(&mut self) -> &Buffer<f32> {
        self.turn = 1 - self.turn;
        &self.buffers[self.turn]
    }
}

/// Without a graph. The argument changes for all kernels, as in a row with all buffers set.
fn one_by_one(bench: &Bench) -> Outcome<Pair<'_>> {
    let kernel = saxpy::load(&bench.context)?;
    let (mut own, mut other) = (Turns::new(bench)?, Turns::new(bench)?);
    let ours = move |count| {
        replays(bench, count, || {
            let x = own.next();
            for _ in 0..NODES {
                let stream = black_box(&bench.stream);
                kernel.launch(stream, per(N as usize, N), (N, 2.0, x, &bench.y))?;
            }
            Ok(())
        })
    };
    let raw = move |count| {
        replays(bench, count, || {
            let x = other.next().address();
            (0..NODES).try_for_each(|_| raw::launch_kernel(bench, x))
        })
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}
