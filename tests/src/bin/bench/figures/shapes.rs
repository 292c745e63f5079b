//! Launches and runs of shaped executables, beside those of the same graph as drawn.

use std::time::Duration;

use cuda_graph::{ContextExt, Graph, GraphExec, InstantiateOptions, Node, Shape};
use cuda_launch::per;

use super::launch::saxpy;
use super::{Bench, N, RowOf};
use crate::Outcome;
use crate::measure::{Pair, timed};

/// Few operations a batch: some graphs take a millisecond.
const BATCH: u32 = 4;

/// What is timed.
#[derive(Clone, Copy)]
enum Timed {
    /// The launch call alone, while nothing runs.
    Launch,
    /// The launch and the wait for its end.
    Run,
}

pub(super) const FIGURES: &[(&str, u32, RowOf)] = &[
    ("shape of 1000 independent, Reduced, launch", BATCH, |bench| {
        beside(bench, independent, Shape::Reduced, Timed::Launch)
    }),
    ("shape of 1000 independent, Reduced, run", BATCH, |bench| {
        beside(bench, independent, Shape::Reduced, Timed::Run)
    }),
    ("shape of 1000 independent, Auto, launch", BATCH, |bench| {
        beside(bench, independent, Shape::Auto, Timed::Launch)
    }),
    ("shape of 1000 independent, Auto, run", BATCH, |bench| {
        beside(bench, independent, Shape::Auto, Timed::Run)
    }),
    ("shape of 20 layers of 64, Reduced, launch", BATCH, |bench| {
        beside(bench, layers, Shape::Reduced, Timed::Launch)
    }),
    ("shape of 20 layers of 64, Reduced, run", BATCH, |bench| {
        beside(bench, layers, Shape::Reduced, Timed::Run)
    }),
    ("shape of 20 layers of 64, Auto, launch", BATCH, |bench| {
        beside(bench, layers, Shape::Auto, Timed::Launch)
    }),
    ("shape of 20 layers of 64, Auto, run", BATCH, |bench| beside(bench, layers, Shape::Auto, Timed::Run)),
    ("shape of a dense graph, Auto, launch", BATCH, |bench| beside(bench, dense, Shape::Auto, Timed::Launch)),
    ("shape of a dense graph, Auto, run", BATCH, |bench| beside(bench, dense, Shape::Auto, Timed::Run)),
    ("shape of a chain with shortcuts, Auto, launch", BATCH, |bench| {
        beside(bench, shortcuts, Shape::Auto, Timed::Launch)
    }),
    ("shape of a chain with shortcuts, Auto, run", BATCH, |bench| {
        beside(bench, shortcuts, Shape::Auto, Timed::Run)
    }),
    ("shape of a chain of 1000 fills, Auto, launch", BATCH, |bench| {
        beside(bench, fills, Shape::Auto, Timed::Launch)
    }),
    ("shape of a chain of 1000 fills, Auto, run", BATCH, |bench| {
        beside(bench, fills, Shape::Auto, Timed::Run)
    }),
    ("shape of 500 fills and copies in, Auto, launch", BATCH, |bench| {
        beside(bench, copies_in, Shape::Auto, Timed::Launch)
    }),
    ("shape of 500 fills and copies in, Auto, run", BATCH, |bench| {
        beside(bench, copies_in, Shape::Auto, Timed::Run)
    }),
    ("shape of 500 fills and copies out, Auto, launch", BATCH, |bench| {
        beside(bench, copies_out, Shape::Auto, Timed::Launch)
    }),
    ("shape of 500 fills and copies out, Auto, run", BATCH, |bench| {
        beside(bench, copies_out, Shape::Auto, Timed::Run)
    }),
];

type Draw = fn(&Bench, &Graph, &saxpy) -> Outcome<()>;

/// The shaped executable is on the side of the library, the one as drawn on the other.
fn beside(bench: &Bench, draw: Draw, shape: Shape, what: Timed) -> Outcome<Pair<'_>> {
    let (graph, kernel) = (bench.context.graph()?, saxpy::load(&bench.context)?);
    draw(bench, &graph, &kernel)?;
    let mut shaped = graph.instantiate_with(InstantiateOptions::new().shape(shape))?;
    let mut drawn = graph.instantiate()?;
    let ours = move |count| times(bench, &mut shaped, what, count);
    let raw = move |count| times(bench, &mut drawn, what, count);
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}

fn times(bench: &Bench, exec: &mut GraphExec, what: Timed, count: u32) -> Outcome<Duration> {
    let mut time = Duration::ZERO;
    for _ in 0..count {
        time += timed(1, || {
            exec.launch(&bench.stream)?;
            match what {
                Timed::Launch => Ok(()),
                Timed::Run => bench.settle(()),
            }
        })?;
        bench.settle(())?;
    }
    Ok(time)
}

/// Adds a kernel after some nodes.
fn add(bench: &Bench, graph: &Graph, kernel: &saxpy, after: &[&Node]) -> Outcome<Node> {
    let frontier = graph.after_all(after.iter().copied())?;
    let node = frontier.launch(kernel, per(N as usize, N), (N, 2.0, &bench.x, &bench.y))?;
    Ok((*node).clone())
}

fn independent(bench: &Bench, graph: &Graph, kernel: &saxpy) -> Outcome<()> {
    (0..1_000).try_for_each(|_| add(bench, graph, kernel, &[]).map(drop))
}

fn layers(bench: &Bench, graph: &Graph, kernel: &saxpy) -> Outcome<()> {
    let mut join: Option<Node> = None;
    for _ in 0..20 {
        let after: Vec<&Node> = join.iter().collect();
        let layer: Vec<Node> = (0..64).map(|_| add(bench, graph, kernel, &after)).collect::<Outcome<_>>()?;
        join = Some((*graph.after_all(layer.iter())?.empty()?).clone());
    }
    Ok(())
}

/// Each kernel waits for some seven of the fifty before it.
fn dense(bench: &Bench, graph: &Graph, kernel: &saxpy) -> Outcome<()> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut seed = 1_u64;
    for at in 0..1_000_usize {
        let mut after: Vec<usize> = Vec::new();
        for _ in 0..7_usize.min(at) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            after.push(at - 1 - (seed >> 33) as usize % at.min(50));
        }
        after.sort_unstable();
        after.dedup();
        let after: Vec<&Node> = after.into_iter().map(|other| &nodes[other]).collect();
        nodes.push(add(bench, graph, kernel, &after)?);
    }
    Ok(())
}

/// A chain in which each kernel also waits for the seven before the last.
fn shortcuts(bench: &Bench, graph: &Graph, kernel: &saxpy) -> Outcome<()> {
    let mut nodes: Vec<Node> = Vec::new();
    for at in 0..1_000_usize {
        let after: Vec<&Node> = nodes[at.saturating_sub(8)..].iter().collect();
        nodes.push(add(bench, graph, kernel, &after)?);
    }
    Ok(())
}

/// A chain of fills of 64 bytes.
fn fills(bench: &Bench, graph: &Graph, _: &saxpy) -> Outcome<()> {
    let target = bench.x.slice(..16)?;
    let mut last = graph.root().fill(target, 0.0)?;
    for _ in 1..1_000 {
        last = last.then().fill(target, 0.0)?;
    }
    Ok(())
}

/// A chain of fills of 64 bytes, with a copy of 2 KiB from pinned memory behind each.
fn copies_in(bench: &Bench, graph: &Graph, _: &saxpy) -> Outcome<()> {
    fills_and_copies(bench, graph, true)
}

/// The same, to pinned memory.
fn copies_out(bench: &Bench, graph: &Graph, _: &saxpy) -> Outcome<()> {
    fills_and_copies(bench, graph, false)
}

fn fills_and_copies(bench: &Bench, graph: &Graph, is_in: bool) -> Outcome<()> {
    let device = bench.stream.zeros::<u8>(2 << 10)?;
    let host = bench.context.pinned_zeros::<u8>(2 << 10)?.share();
    let mut last: Option<Node> = None;
    for _ in 0..500 {
        let frontier = graph.after_all(last.iter())?;
        let fill = frontier.fill(bench.x.slice(..16)?, 0.0)?;
        let copy = match is_in {
            true => fill.then().copy(&host, &device)?,
            false => fill.then().copy(&device, &host)?,
        };
        last = Some((*copy).clone());
    }
    Ok(())
}
