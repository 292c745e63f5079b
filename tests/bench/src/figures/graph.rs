//! Graphs: adding nodes and launching.

use core::hint::black_box;

use cuda_graph::ContextExt;
use cuda_launch::{params, per};

use super::Row;
use crate::Outcome;
use crate::bench::{Bench, N, RawArguments};
use crate::measure::{Pair, timed};
use crate::raw::{RawGraph, kernel_node, ok};

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
        let graph = RawGraph::new(bench)?;
        timed(count, || {
            let (n, a) = black_box((N, 2.0_f32));
            let mut arguments = RawArguments::new(bench, n, a);
            let mut pointers = arguments.pointers();
            let size = (n.div_ceil(N), N);
            graph.add(&[], &mut kernel_node(bench, &bench.saxpy, size, pointers.as_mut_ptr()))?;
            Ok(())
        })
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}
