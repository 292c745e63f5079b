//! Launches with graph parameters set, beside updates of the nodes by raw calls.

use core::hint::black_box;

use cuda_graph::{ContextExt, Graph, GraphExec, GraphParam, KernelNode};
use cuda_launch::per;

use super::raw::RawReplay;
use super::{NODES, Turns, replays};
use crate::Outcome;
use crate::bench::{Bench, N};
use crate::figures::launch::saxpy;
use crate::measure::Pair;

/// The parameters of a chain of kernels: each has a number and a buffer.
pub(super) struct Parameters {
    numbers: Vec<GraphParam<f32>>,
    pub(super) buffers: Vec<GraphParam<[f32]>>,
}

/// A chain of kernels with parameters.
pub(super) fn chain(bench: &Bench, kernel: &saxpy) -> cuda_graph::Result<(Graph, Parameters)> {
    let graph = bench.context.graph()?;
    let (mut numbers, mut buffers) = (Vec::new(), Vec::new());
    let mut last: Option<KernelNode> = None;
    for _ in 0..NODES {
        let (number, buffer) = (graph.param(2.0_f32)?, graph.param(&bench.x)?);
        let frontier = last.as_ref().map_or_else(|| graph.root(), |node| node.then());
        let arguments = (N, &number, &buffer, &bench.y);
        last = Some(frontier.launch(kernel, per(N as usize, N), arguments)?);
        numbers.push(number);
        buffers.push(buffer);
    }
    Ok((graph, Parameters { numbers, buffers }))
}

/// An executable of it.
struct Ours {
    exec: GraphExec,
    parameters: Parameters,
}

impl Ours {
    fn new(bench: &Bench) -> Outcome<Self> {
        let (graph, parameters) = chain(bench, &saxpy::load(&bench.context)?)?;
        let mut exec = graph.instantiate()?;
        exec.launch(&bench.stream)?;
        Ok(Self { exec, parameters })
    }
}

pub(super) fn nothing(bench: &Bench) -> Outcome<Pair<'_>> {
    buffers(bench, 0)
}

pub(super) fn one_number(bench: &Bench) -> Outcome<Pair<'_>> {
    let (mut own, raw) = (Ours::new(bench)?, RawReplay::instantiated(bench)?);
    let mut a = 0.0;
    let ours = move |count| {
        replays(bench, count, || {
            a += 1.0;
            Ok(own.exec.launch_with(black_box(&bench.stream), ((&own.parameters.numbers[3], a),))?)
        })
    };
    let mut a = 0.0;
    let raw = move |count| {
        replays(bench, count, || {
            a += 1.0;
            raw.set_in_exec(3, a, bench.x.address())?;
            raw.launch()
        })
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}

pub(super) fn one_buffer(bench: &Bench) -> Outcome<Pair<'_>> {
    buffers(bench, 1)
}

pub(super) fn all_buffers(bench: &Bench) -> Outcome<Pair<'_>> {
    buffers(bench, NODES)
}

/// A replay after which so many nodes have another buffer.
fn buffers(bench: &Bench, changed: usize) -> Outcome<Pair<'_>> {
    let (mut own, raw) = (Ours::new(bench)?, RawReplay::instantiated(bench)?);
    let (mut values, others) = (Turns::new(bench)?, Turns::new(bench)?);
    let ours = move |count| {
        replays(bench, count, || {
            let x = values.next();
            for buffer in own.parameters.buffers.iter().take(changed) {
                own.exec.set(buffer, x)?;
            }
            Ok(own.exec.launch(black_box(&bench.stream))?)
        })
    };
    Ok(Pair { ours: Box::new(ours), raw: raw.with_buffers(changed, others) })
}
