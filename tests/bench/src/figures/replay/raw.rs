//! The chain of kernels by raw calls.

use cuda_sys::{CUgraphExecUpdateResultInfo, CUgraphNode, CUgraphNodeParams};

use super::{NODES, Turns, replays};
use crate::Outcome;
use crate::bench::{Bench, N, RawArguments};
use crate::figures::launch::launch_raw;
use crate::measure::Way;
use crate::raw::{self, RawExec, kernel_node, ok};

/// A graph with an executable.
pub(super) struct RawReplay<'b> {
    bench: &'b Bench,
    graph: raw::RawGraph,
    nodes: Vec<CUgraphNode>,
    exec: RawExec,
}

impl<'b> RawReplay<'b> {
    pub(super) fn instantiated(bench: &'b Bench) -> Outcome<Self> {
        let graph = raw::RawGraph::new(bench)?;
        let mut nodes: Vec<CUgraphNode> = Vec::new();
        for _ in 0..NODES {
            let before = nodes.last().map_or(&[][..], core::slice::from_ref);
            nodes.push(with_kernel(bench, 2.0, bench.x.address(), |params| graph.add(before, params))?);
        }
        let made = Self { bench, exec: graph.instantiate()?, graph, nodes };
        made.launch()?;
        Ok(made)
    }

    /// Replaces the executable.
    pub(super) fn instantiate(&mut self) -> Outcome<()> {
        self.exec = self.graph.instantiate()?;
        Ok(())
    }

    /// Sets the arguments of a node of the executable, by the generic call: the faster one.
    #[inline]
    pub(super) fn set_in_exec(&self, node: usize, a: f32, x: u64) -> Outcome<()> {
        with_kernel(self.bench, a, x, |params| {
            // SAFETY: executable and node live, and the parameters are those of the kernel.
            ok(unsafe {
                self.bench.driver().cuGraphExecNodeSetParams(self.exec.as_raw(), self.nodes[node], params)
            })
        })
    }

    /// Sets the arguments of all nodes of the graph.
    pub(super) fn set_all(&self, a: f32, x: u64) -> Outcome<()> {
        self.nodes.iter().try_for_each(|node| {
            with_kernel(self.bench, a, x, |params| {
                // SAFETY: the node lives, and the parameters are those of the kernel.
                ok(unsafe { self.bench.driver().cuGraphNodeSetParams(*node, params) })
            })
        })
    }

    /// Updates the executable to the graph.
    pub(super) fn update(&self) -> Outcome<()> {
        let mut result = CUgraphExecUpdateResultInfo::default();
        // SAFETY: executable, graph and out pointer are valid.
        ok(unsafe {
            self.bench.driver().cuGraphExecUpdate(self.exec.as_raw(), self.graph.as_raw(), &raw mut result)
        })
    }

    /// Replays before which so many nodes of the executable get another buffer.
    pub(super) fn with_buffers(self, changed: usize, mut values: Turns) -> Way<'b> {
        Box::new(move |count| {
            replays(self.bench, count, || {
                let x = values.next().address();
                (0..changed).try_for_each(|node| self.set_in_exec(node, 2.0, x))?;
                self.launch()
            })
        })
    }

    #[inline]
    pub(super) fn launch(&self) -> Outcome<()> {
        self.exec.launch(self.bench)
    }
}

/// Hands out the parameters of a node that launches the kernel.
#[inline]
fn with_kernel<T>(bench: &Bench, a: f32, x: u64, call: impl FnOnce(&mut CUgraphNodeParams) -> T) -> T {
    let mut arguments = RawArguments { x, ..RawArguments::new(bench, N, a) };
    let mut pointers = arguments.pointers();
    call(&mut kernel_node(bench, &bench.saxpy, (1, N), pointers.as_mut_ptr()))
}

/// A launch of the kernel on the stream.
#[inline]
pub(super) fn launch_kernel(bench: &Bench, x: u64) -> Outcome<()> {
    let mut arguments = RawArguments { x, ..RawArguments::new(bench, N, 2.0) };
    ok(launch_raw(bench, 1, &mut arguments.pointers()))
}
