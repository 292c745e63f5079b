//! Launches of a graph of eight kernels with changed graph parameters.

use core::hint::black_box;
use core::ptr;

use cuda_graph::{ContextExt, Graph, GraphExec, GraphParam};
use cuda_handles::Buffer;
use cuda_launch::per;
use cuda_sys::{CUgraph, CUgraphExec, CUgraphNode, CUgraphNodeParams, CUgraphNodeType};

use super::launch::saxpy;
use super::{Bench, N, RawArguments, Row, ok};
use crate::Outcome;
use crate::measure::{Pair, timed};

const NODES: usize = 8;

pub(super) const FIGURES: &[Row] = &[
    ("graph launch, one changed parameter", one_number),
    ("graph launch, one changed buffer", one_buffer),
    ("graph launch, all of 8 changed", all),
];

/// A graph of kernels that each have a number and a buffer as parameters.
struct Ours {
    exec: GraphExec,
    numbers: Vec<GraphParam<f32>>,
    buffers: Vec<GraphParam<[f32]>>,
    others: [Buffer<f32>; 2],
}

impl Ours {
    fn new(bench: &Bench) -> Outcome<Self> {
        let (graph, kernel) = (bench.context.graph()?, saxpy::load(&bench.context)?);
        let others = [bench.stream.zeros(N as usize)?, bench.stream.zeros(N as usize)?];
        bench.stream.synchronize_blocking()?;
        let (mut numbers, mut buffers) = (Vec::new(), Vec::new());
        for _ in 0..NODES {
            let (number, buffer) = (graph.param(2.0_f32)?, graph.param(&bench.x)?);
            graph.root().launch(&kernel, per(N as usize, N), (N, &number, &buffer, &bench.y))?;
            numbers.push(number);
            buffers.push(buffer);
        }
        let mut exec = graph.instantiate()?;
        exec.launch(&bench.stream)?;
        Ok(Self { exec, numbers, buffers, others })
    }
}

/// The same graph by raw calls.
struct Raw<'b> {
    bench: &'b Bench,
    /// Keeps the driver's graph.
    _graph: Graph,
    exec: CUgraphExec,
    nodes: Vec<CUgraphNode>,
}

impl<'b> Raw<'b> {
    fn new(bench: &'b Bench) -> Outcome<Self> {
        let mut raw: CUgraph = ptr::null_mut();
        // SAFETY: the out pointer is valid.
        ok(unsafe { bench.driver().cuGraphCreate(&raw mut raw, 0) })?;
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            let mut node = ptr::null_mut();
            let mut arguments = RawArguments::new(bench, N, 2.0);
            let mut pointers = arguments.pointers();
            let mut params = kernel(bench, pointers.as_mut_ptr());
            // SAFETY: the graph lives, and the parameters point to the kernel's four arguments.
            ok(unsafe {
                bench.driver().cuGraphAddNode(&raw mut node, raw, ptr::null(), 0, &raw mut params)
            })?;
            nodes.push(node);
        }
        // SAFETY: the graph is ours, and nobody else has it.
        let graph = unsafe { Graph::from_raw_owned(&bench.context, raw) }?;
        let mut exec = ptr::null_mut();
        // SAFETY: graph and out pointer are valid.
        ok(unsafe { bench.driver().cuGraphInstantiateWithFlags(&raw mut exec, raw, 0) })?;
        Ok(Self { bench, _graph: graph, exec, nodes })
    }

    #[inline]
    fn set(&self, node: CUgraphNode, a: f32, x: u64) -> Outcome<()> {
        let mut arguments = RawArguments::new(self.bench, N, a);
        arguments.x = x;
        let mut pointers = arguments.pointers();
        let mut params = kernel(self.bench, pointers.as_mut_ptr());
        // SAFETY: executable and node live, and the parameters point to the kernel's arguments.
        ok(unsafe { self.bench.driver().cuGraphExecNodeSetParams(self.exec, node, &raw mut params) })
    }

    #[inline]
    fn launch(&self) -> Outcome<()> {
        // SAFETY: executable and stream live.
        ok(unsafe { self.bench.driver().cuGraphLaunch(self.exec, black_box(self.bench.stream.as_raw())) })
    }
}

impl Drop for Raw<'_> {
    fn drop(&mut self) {
        // SAFETY: the executable is ours.
        let _ = unsafe { self.bench.driver().cuGraphExecDestroy(self.exec) };
    }
}

#[inline]
fn kernel(bench: &Bench, pointers: *mut *mut core::ffi::c_void) -> CUgraphNodeParams {
    let type_ = CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
    let mut params = CUgraphNodeParams { type_, ..CUgraphNodeParams::default() };
    let to = &mut params.__bindgen_anon_1;
    to.kernel.gridDimX = 1;
    to.kernel.gridDimY = 1;
    to.kernel.gridDimZ = 1;
    to.kernel.blockDimX = N;
    to.kernel.blockDimY = 1;
    to.kernel.blockDimZ = 1;
    to.kernel.kernelParams = pointers;
    to.kernel.kern = bench.saxpy.as_raw();
    to.kernel.ctx = bench.context.as_raw();
    params
}

fn one_number(bench: &Bench) -> Outcome<Pair<'_>> {
    let (mut own, raw) = (Ours::new(bench)?, Raw::new(bench)?);
    let ours = move |count| {
        let mut a = 0.0;
        let time = timed(count, || {
            a += 1.0;
            Ok(own.exec.launch_with(black_box(&bench.stream), ((&own.numbers[3], a),))?)
        })?;
        bench.settle(time)
    };
    let raw = move |count| {
        let mut a = 0.0;
        let time = timed(count, || {
            a += 1.0;
            raw.set(raw.nodes[3], a, bench.x.address())?;
            raw.launch()
        })?;
        bench.settle(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}

fn one_buffer(bench: &Bench) -> Outcome<Pair<'_>> {
    buffers(bench, 1)
}

fn all(bench: &Bench) -> Outcome<Pair<'_>> {
    buffers(bench, NODES)
}

fn buffers(bench: &Bench, changed: usize) -> Outcome<Pair<'_>> {
    let (mut own, raw) = (Ours::new(bench)?, Raw::new(bench)?);
    let ours = move |count| {
        let mut turn = 0;
        let time = timed(count, || {
            turn = 1 - turn;
            for buffer in own.buffers.iter().take(changed) {
                own.exec.set(buffer, &own.others[turn])?;
            }
            Ok(own.exec.launch(black_box(&bench.stream))?)
        })?;
        bench.settle(time)
    };
    let addresses = [bench.x.address(), bench.y.address()];
    let raw = move |count| {
        let mut turn = 0;
        let time = timed(count, || {
            turn = 1 - turn;
            for node in raw.nodes.iter().take(changed) {
                raw.set(*node, 2.0, addresses[turn])?;
            }
            raw.launch()
        })?;
        bench.settle(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}
