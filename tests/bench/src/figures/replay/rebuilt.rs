//! Launches after the nodes of the graph were changed: of the updated executable, or of a new one.

use core::hint::black_box;

use cuda_graph::{ContextExt, Graph, GraphExec, KernelNode};
use cuda_launch::per;

use super::raw::RawReplay;
use super::{Turns, chain, replays};
use crate::Outcome;
use crate::bench::{Bench, N};
use crate::figures::launch::saxpy;
use crate::measure::Pair;

/// A chain of kernels without graph parameters.
struct Ours<'b> {
    bench: &'b Bench,
    kernel: saxpy,
    graph: Graph,
    nodes: Vec<KernelNode>,
    exec: GraphExec,
}

impl<'b> Ours<'b> {
    fn new(bench: &'b Bench) -> Outcome<Self> {
        let (graph, kernel) = (bench.context.graph()?, saxpy::load(&bench.context)?);
        let nodes = chain(bench, &graph, &kernel)?;
        let mut exec = graph.instantiate()?;
        exec.launch(&bench.stream)?;
        Ok(Self { bench, kernel, graph, nodes, exec })
    }

    /// Gives all nodes of the graph another buffer.
    fn change(&self, values: &mut Turns) -> Outcome<()> {
        let x = values.next();
        for node in &self.nodes {
            node.set(&self.kernel, per(N as usize, N), (N, 2.0, x, &self.bench.y))?;
        }
        Ok(())
    }

    fn launch(&mut self) -> Outcome<()> {
        Ok(self.exec.launch(black_box(&self.bench.stream))?)
    }
}

pub(super) fn updated(bench: &Bench) -> Outcome<Pair<'_>> {
    let (mut own, raw) = (Ours::new(bench)?, RawReplay::instantiated(bench)?);
    let (mut values, mut others) = (Turns::new(bench)?, Turns::new(bench)?);
    let ours = move |count| {
        replays(bench, count, || {
            own.change(&mut values)?;
            if let Some(refusal) = own.exec.update(&own.graph)?.refusal() {
                return Err(refusal.to_string().into());
            }
            own.launch()
        })
    };
    let raw = move |count| {
        replays(bench, count, || {
            let x = others.next().address();
            raw.set_all(2.0, x)?;
            raw.update()?;
            raw.launch()
        })
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}

pub(super) fn instantiated(bench: &Bench) -> Outcome<Pair<'_>> {
    let (mut own, mut raw) = (Ours::new(bench)?, RawReplay::instantiated(bench)?);
    let (mut values, mut others) = (Turns::new(bench)?, Turns::new(bench)?);
    let ours = move |count| {
        replays(bench, count, || {
            own.change(&mut values)?;
            own.exec = own.graph.instantiate()?;
            own.launch()
        })
    };
    let raw = move |count| {
        replays(bench, count, || {
            let x = others.next().address();
            raw.set_all(2.0, x)?;
            raw.instantiate()?;
            raw.launch()
        })
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}
