//! Graphs: adding nodes and launching.

use core::hint::black_box;
use core::ptr;

use cuda_graph::ContextExt;
use cuda_launch::{params, per};
use cuda_sys::{CUgraph, CUgraphNodeParams, CUgraphNodeType};

use super::{Bench, N, RawArguments, Row, ok};
use crate::Outcome;
use crate::measure::{Pair, timed};

pub(super) const FIGURES: &[Row] =
    &[("graph launch", launch), ("kernel node, four kept arguments", add_node)];

fn launch(bench: &Bench) -> Outcome<Pair<'_>> {
    let graph = bench.context.graph()?;
    // SAFETY: the arguments are the kernel's, and both buffers have `N` elements.
    unsafe {
        graph.root().launch_untyped(&bench.saxpy, per(N as usize, N), params![N, 2.0_f32, &bench.x, &bench.y])
    }?;
    let mut exec = graph.instantiate()?;
    exec.launch(&bench.stream)?;
    let raw = exec.as_raw();
    let ours = move |count| {
        let time = timed(count, || Ok(exec.launch(black_box(&bench.stream))?))?;
        bench.settle(time)
    };
    let raw = move |count| {
        let time = timed(count, || {
            // SAFETY: the stream lives, and the executable with the other closure.
            ok(unsafe { bench.driver().cuGraphLaunch(black_box(raw), black_box(bench.stream.as_raw())) })
        })?;
        bench.settle(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}

fn add_node(bench: &Bench) -> Outcome<Pair<'_>> {
    let ours = move |count| {
        let graph = bench.context.graph()?;
        timed(count, || {
            let kernel = black_box(&bench.saxpy);
            let (n, a) = black_box((N, 2.0_f32));
            let arguments = params![n, a, &bench.x, &bench.y];
            // SAFETY: the graph is never launched.
            unsafe { graph.root().launch_untyped(kernel, per(n as usize, N), arguments) }?;
            Ok(())
        })
    };
    let raw = move |count| {
        let mut graph: CUgraph = ptr::null_mut();
        // SAFETY: the out pointer is valid.
        ok(unsafe { bench.driver().cuGraphCreate(&raw mut graph, 0) })?;
        let time = timed(count, || raw_node(bench, graph));
        // SAFETY: the graph is ours.
        ok(unsafe { bench.driver().cuGraphDestroy(graph) })?;
        time
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}

#[inline]
fn raw_node(bench: &Bench, graph: CUgraph) -> Outcome<()> {
    let (n, a) = black_box((N, 2.0_f32));
    let mut arguments = RawArguments::new(bench, n, a);
    let mut pointers = arguments.pointers();
    let type_ = CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
    let mut params = CUgraphNodeParams { type_, ..CUgraphNodeParams::default() };
    let to = &mut params.__bindgen_anon_1;
    to.kernel.gridDimX = n.div_ceil(N);
    to.kernel.gridDimY = 1;
    to.kernel.gridDimZ = 1;
    to.kernel.blockDimX = N;
    to.kernel.blockDimY = 1;
    to.kernel.blockDimZ = 1;
    to.kernel.kernelParams = pointers.as_mut_ptr();
    to.kernel.kern = bench.saxpy.as_raw();
    to.kernel.ctx = bench.context.as_raw();
    let mut node = ptr::null_mut();
    // SAFETY: the graph lives, there are no dependencies, and the parameters point to the kernel's
    // four arguments.
    ok(unsafe { bench.driver().cuGraphAddNode(&raw mut node, graph, ptr::null(), 0, &raw mut params) })
}
