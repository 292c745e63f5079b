//! A graph of some form, made by each side.

use core::hint::black_box;
use core::ptr;

use cuda_graph::{ContextExt, Graph, GraphExec, InstantiateOptions, KernelNode, Node, Shape};
use cuda_handles::Kernel;
use cuda_launch::{params, per};
use cuda_sys::CUgraphNode;

use crate::Outcome;
use crate::bench::Bench;
use crate::raw::{RawExec, RawGraph, kernel_node};

/// A graph that can be instantiated.
pub(crate) trait Made {
    fn instantiate(&self) -> Outcome<Box<dyn Launch>>;
}

/// An executable.
pub(crate) trait Launch {
    fn launch(&mut self, bench: &Bench) -> Outcome<()>;
}

/// A graph of the library, instantiated as drawn or shaped.
pub(crate) struct Ours {
    pub(crate) graph: Graph,
    pub(crate) shape: Option<Shape>,
}

impl Made for Ours {
    fn instantiate(&self) -> Outcome<Box<dyn Launch>> {
        let exec = match self.shape {
            None => self.graph.instantiate(),
            Some(shape) => self.graph.instantiate_with(InstantiateOptions::new().shape(shape)),
        };
        Ok(Box::new(exec?))
    }
}

impl Made for RawGraph {
    fn instantiate(&self) -> Outcome<Box<dyn Launch>> {
        Ok(Box::new(self.instantiate()?))
    }
}

impl Launch for GraphExec {
    fn launch(&mut self, bench: &Bench) -> Outcome<()> {
        Ok(GraphExec::launch(self, black_box(&bench.stream))?)
    }
}

impl Launch for RawExec {
    fn launch(&mut self, bench: &Bench) -> Outcome<()> {
        RawExec::launch(self, bench)
    }
}

/// Makes a graph of kernels without arguments by the library.
pub(crate) fn ours(bench: &Bench, kernel: &Kernel, dependencies: &[Vec<usize>]) -> Outcome<Graph> {
    let graph = bench.context.graph()?;
    let mut nodes: Vec<KernelNode> = Vec::with_capacity(dependencies.len());
    for before in dependencies {
        let before = before.iter().filter_map(|node| nodes.get(*node));
        let frontier = graph.after_all(before.map(|node| -> &Node { node }))?;
        // SAFETY: the kernel has no parameters and does nothing.
        let node = unsafe { frontier.launch_untyped(black_box(kernel), per(1, 1), params![]) }?;
        nodes.push(node);
    }
    Ok(graph)
}

/// Makes the same graph by raw calls.
pub(crate) fn raw(bench: &Bench, kernel: &Kernel, dependencies: &[Vec<usize>]) -> Outcome<RawGraph> {
    let graph = RawGraph::new(bench)?;
    let mut nodes: Vec<CUgraphNode> = Vec::with_capacity(dependencies.len());
    let mut handles = Vec::new();
    for before in dependencies {
        handles.clear();
        handles.extend(before.iter().filter_map(|node| nodes.get(*node)));
        let mut params = kernel_node(bench, black_box(kernel), (1, 1), ptr::null_mut());
        nodes.push(graph.add(&handles, &mut params)?);
    }
    Ok(graph)
}
