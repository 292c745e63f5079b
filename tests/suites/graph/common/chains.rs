//! Chains of nodes that increment one buffer, so that a run tells how many there were.

use cuda_graph::{ContextExt, Graph, Node};
use cuda_handles::{Buffer, Context, Kernel, Stream};
use cuda_launch::{params, per};
use cuda_tests::{Need, kernel};

pub(crate) const N: usize = 64;

/// A stream, a buffer of zeros, and the kernel that increments it.
pub(crate) struct Bench {
    pub(crate) stream: Stream,
    pub(crate) numbers: Buffer<u32>,
    pub(crate) increment: Kernel,
}

impl Bench {
    pub(crate) fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        Self { stream, numbers, increment: kernel(context, "increment") }
    }

    /// Adds a node that increments all numbers.
    pub(crate) fn step(&self, at: &cuda_graph::Frontier<'_>) -> Node {
        let params = params![&self.numbers, N as u32];
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        unsafe { at.launch_untyped(&self.increment, per(N, 64), params) }.unwrap().into()
    }

    /// A graph that increments all numbers `steps` times, one after the other.
    pub(crate) fn chain(&self, context: &Context, steps: usize) -> Graph {
        let graph = context.graph().unwrap();
        let mut last = self.step(&graph.root());
        for _ in 1..steps {
            last = self.step(&last.then());
        }
        graph
    }

    /// The number that a run of the graph adds to each element.
    #[track_caller]
    pub(crate) fn adds(&self, graph: &Graph) -> u32 {
        let mut exec = graph.instantiate().unwrap();
        self.stream.fill(&self.numbers, 0).unwrap();
        exec.launch(&self.stream).unwrap();
        let numbers = self.numbers.read_blocking(&self.stream).unwrap();
        assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
        numbers[0]
    }
}

pub(crate) fn names(graph: &Graph) -> Vec<String> {
    graph.nodes().unwrap().iter().map(|node| node.name()).collect()
}

/// Whether the driver can move graphs into nodes.
pub(crate) fn moves() -> bool {
    Need::MovedGraphs.is_met()
}
