//! Graphs that add to numbers.

use cuda_graph::{ContextExt, Graph, GraphExec};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::per;

use crate::capture::{N, add_to};

/// A stream, a kernel that adds to the first number, and numbers.
pub(super) struct Adding {
    pub(super) stream: Stream,
    pub(super) add: add_to,
    pub(super) numbers: Buffer<u32>,
}

impl Adding {
    pub(super) fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros(N).unwrap();
        Self { add: add_to::load(context).unwrap(), stream, numbers }
    }
}

/// Adds `amount` to the first number.
pub(super) fn adding(context: &Context, add: &add_to, amount: u32, to: &Buffer<u32>) -> Graph {
    let graph = context.graph().unwrap();
    let _node = graph.root().launch(add, per(1, 1), (amount, to)).unwrap().named("adds");
    graph
}

pub(super) fn first(buffer: &Buffer<u32>, stream: &Stream) -> u32 {
    buffer.read_blocking(stream).unwrap()[0]
}

/// The first number after a launch.
pub(super) fn run(exec: &mut GraphExec, numbers: &Buffer<u32>, stream: &Stream) -> u32 {
    exec.launch(stream).unwrap();
    first(numbers, stream)
}
