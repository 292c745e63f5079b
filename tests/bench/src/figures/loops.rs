//! Rounds of loops: of a WHILE node, decided on the device, beside a loop that the host decides.
//! The body is one small kernel.

use cuda_graph::{ContextExt, Graph, GraphExec, KernelNode};
use cuda_handles::{Buffer, Image, Kernel, Library};
use cuda_launch::{params, per};

use super::Row;
use crate::Outcome;
use crate::bench::{Bench, IMAGE};
use crate::measure::{Pair, Way, timed};

pub(super) const FIGURES: &[Row] = &[
    ("round of a WHILE, beside a host that looks", beside_looking),
    ("round of a WHILE, beside a host that counts", beside_counting),
];

/// The start values, from which the loops count up to 0.
type Left = Buffer<u32>;

fn beside_looking(bench: &Bench) -> Outcome<Pair<'_>> {
    let left = bench.context.alloc_blocking(1)?;
    let mut body = body(bench, &left)?;
    let raw = move |count: u32| {
        set(bench, &left, count)?;
        timed(1, || {
            let mut found = [1];
            while found != [0] {
                body.launch(&bench.stream)?;
                left.read_into_blocking(&bench.stream, &mut found)?;
            }
            Ok(())
        })
    };
    Ok(Pair { ours: on_the_device(bench)?, raw: Box::new(raw) })
}

fn beside_counting(bench: &Bench) -> Outcome<Pair<'_>> {
    let left = bench.context.alloc_blocking(1)?;
    let mut body = body(bench, &left)?;
    let raw = move |count: u32| {
        set(bench, &left, count)?;
        timed(1, || {
            (0..count).try_for_each(|_| body.launch(&bench.stream))?;
            bench.settle(())
        })
    };
    Ok(Pair { ours: on_the_device(bench)?, raw: Box::new(raw) })
}

/// One launch of a graph with the loop, until that has ended.
fn on_the_device(bench: &Bench) -> Outcome<Way<'_>> {
    let (graph, left) = (bench.context.graph()?, bench.context.alloc_blocking(1)?);
    let kernel = increment(bench)?;
    graph.root().while_loop(cuda_graph::Test::nonzero(&left), |round| add_round(round, &kernel, &left))?;
    let mut exec = { graph }.instantiate()?;
    Ok(Box::new(move |count| {
        set(bench, &left, count)?;
        timed(1, || {
            exec.launch(&bench.stream)?;
            bench.settle(())
        })
    }))
}

/// The same body in a graph of its own.
fn body(bench: &Bench, left: &Left) -> Outcome<GraphExec> {
    let graph = bench.context.graph()?;
    add_round(&graph, &increment(bench)?, left)?;
    Ok({ graph }.instantiate()?)
}

fn add_round(body: &Graph, increment: &Kernel, left: &Left) -> cuda_graph::Result<KernelNode> {
    // SAFETY: the kernel is `increment(unsigned *values, unsigned n)`, and there is one value.
    unsafe { body.root().launch_untyped(increment, per(1, 1), params![left, 1_u32]) }
}

fn increment(bench: &Bench) -> Outcome<Kernel> {
    Ok(Library::load(&bench.context, Image::Ptx(IMAGE))?.kernel("increment")?)
}

/// The start value for so many rounds: that many increments lead to 0.
fn set(bench: &Bench, left: &Left, count: u32) -> Outcome<()> {
    bench.stream.fill(left, count.wrapping_neg())?;
    bench.settle(())
}
