//! Graphs as people draw them.

use cuda_graph::{ContextExt, Frontier, Graph, Node, StreamExt, Test};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, SharedHostBuffer, Stream};
use cuda_launch::{kernel, per, per_2d};

use crate::Outcome;

kernel! {
    // SAFETY: the kernel has these parameters, and touches the first number alone.
    unsafe in "../../../kernels/work.ptx";

    fn work(cycles: u32, numbers: InOut<u32>)
    where numbers.len() >= 1;
}

kernel! {
    // SAFETY: the kernel has these parameters. Each thread writes the cell of its place, and reads
    // cells of the plate alone.
    unsafe in "../../../kernels/heat.ptx";

    fn heat_step(width: u32, height: u32, coefficient: f32, from: In<f32>, to: Out<f32>)
    where from.len() >= width * height, to.len() >= width * height;
}

/// Cells in a row of the plate.
const SIDE: u32 = 512;

/// What the drawings use.
pub(super) struct Kit {
    pub(super) context: Context,
    pub(super) stream: Stream,
    work: work,
    heat_step: heat_step,
    /// 64 KiB each.
    buffers: Vec<Buffer<u32>>,
    pinned: SharedHostBuffer<u32>,
    plates: [Buffer<f32>; 2],
    /// The number 1.
    one: Buffer<u32>,
}

/// A graph.
pub(super) struct Drawing {
    pub(super) name: &'static str,
    pub(super) draw: fn(&Kit) -> Outcome<Graph>,
}

/// Kernels do nothing, unless a name says otherwise.
pub(super) const DRAWINGS: &[Drawing] = &[
    Drawing { name: "1000 independent", draw: |kit| kit.independent(|_| 0) },
    Drawing {
        name: "1000 independent, every 32nd 50 µs long, the others 0.5 µs",
        draw: |kit| kit.independent(|number| if number % 32 == 0 { 90_000 } else { 900 }),
    },
    Drawing { name: "20 layers of 64, joined by empty nodes", draw: |kit| kit.layers(20, 64) },
    Drawing { name: "20 layers of 4, joined by empty nodes", draw: |kit| kit.layers(20, 4) },
    Drawing { name: "dense random graph of 1000", draw: |kit| kit.random(1_000, 7) },
    Drawing { name: "sparse random graph of 1000", draw: |kit| kit.random(1_000, 2) },
    Drawing { name: "chain of 1000", draw: |kit| kit.chain(1_000, 1, 0) },
    Drawing { name: "chain of 1000, 7 shortcuts each", draw: |kit| kit.chain(1_000, 8, 0) },
    Drawing { name: "chain of 200 of 5 µs", draw: |kit| kit.chain(200, 1, 9_000) },
    Drawing { name: "tree reduction of 1024", draw: Kit::tree },
    Drawing { name: "stencil, 50 steps of 16 parts", draw: Kit::stencil },
    Drawing { name: "12 transformer blocks, kernels of 2 µs", draw: Kit::transformer },
    Drawing { name: "chain of 1000 fills of 64 B", draw: |kit| kit.fills(16) },
    Drawing { name: "chain of 200 fills of 64 KiB", draw: |kit| kit.fills(16_384) },
    Drawing { name: "500 × fill, copy pinned to device, 2 KiB", draw: |kit| kit.copies(500, 512, true) },
    Drawing { name: "500 × fill, copy device to pinned, 2 KiB", draw: |kit| kit.copies(500, 512, false) },
    Drawing { name: "100 × fill, copy pinned to device, 64 KiB", draw: |kit| kit.copies(100, 16_384, true) },
    Drawing { name: "heat, 100 steps of 512 × 512, a fill each", draw: Kit::heat },
    Drawing { name: "chain of 512 on 64 buffers, captured", draw: Kit::captured },
    Drawing {
        name: "loop: 100 rounds of a chain of 20",
        draw: |kit| kit.repeat(|body| kit.chain_in(body, 20, 1, 0)),
    },
    Drawing {
        name: "loop: 100 rounds of a chain of 20, 7 shortcuts each",
        draw: |kit| kit.repeat(|body| kit.chain_in(body, 20, 8, 0)),
    },
    Drawing {
        name: "loop: 100 rounds of 5 layers of 4, joined by empty nodes",
        draw: |kit| kit.repeat(|body| kit.layers_in(body, 5, 4)),
    },
    Drawing {
        name: "loop: 100 rounds of 2 layers of 64, joined by empty nodes",
        draw: |kit| kit.repeat(|body| kit.layers_in(body, 2, 64)),
    },
];

/// Graphs of which the instantiation alone is measured, and only if a filter names them: it takes
/// seconds.
pub(super) const LARGE: &[Drawing] = &[
    Drawing { name: "random graph of 100 000, a million edges", draw: |kit| kit.random(100_000, 10) },
    Drawing { name: "chain of 100 000, 9 shortcuts each", draw: |kit| kit.chain(100_000, 10, 0) },
];

impl Kit {
    pub(super) fn new(context: &Context) -> Outcome<Self> {
        let stream = context.stream()?;
        let buffers = (0..64).map(|_| stream.zeros(16_384)).collect::<Result<Vec<_>, _>>()?;
        let plate = || stream.zeros((SIDE * SIDE) as usize);
        let kit = Self {
            work: work::load_waiting(context)?,
            heat_step: heat_step::load_waiting(context)?,
            buffers,
            pinned: context.pinned_zeros(16_384)?.share(),
            plates: [plate()?, plate()?],
            one: stream.upload(&[1])?,
            context: context.clone(),
            stream: stream.clone(),
        };
        stream.synchronize_blocking()?;
        Ok(kit)
    }

    fn graph(&self) -> Outcome<Graph> {
        Ok(self.context.graph()?)
    }

    fn buffer(&self, number: usize) -> &Buffer<u32> {
        &self.buffers[number % self.buffers.len()]
    }

    /// Adds a kernel of so many cycles on a buffer.
    fn add(&self, at: &Frontier<'_>, cycles: u32, buffer: usize) -> Outcome<Node> {
        Ok((*at.launch(&self.work, per(32, 32), (cycles, self.buffer(buffer)))?).clone())
    }

    fn after(&self, graph: &Graph, nodes: &[&Node], cycles: u32, buffer: usize) -> Outcome<Node> {
        self.add(&graph.after_all(nodes.iter().copied())?, cycles, buffer)
    }

    fn independent(&self, cycles: impl Fn(usize) -> u32) -> Outcome<Graph> {
        let graph = self.graph()?;
        for number in 0..1_000 {
            self.add(&graph.root(), cycles(number), number)?;
        }
        Ok(graph)
    }

    fn layers(&self, layers: usize, width: usize) -> Outcome<Graph> {
        let graph = self.graph()?;
        self.layers_in(&graph, layers, width)?;
        Ok(graph)
    }

    /// Returns the last empty node.
    fn layers_in(&self, graph: &Graph, layers: usize, width: usize) -> Outcome<Vec<Node>> {
        let mut join: Option<Node> = None;
        for _ in 0..layers {
            let after: Vec<&Node> = join.iter().collect();
            let layer: Vec<Node> =
                (0..width).map(|number| self.after(graph, &after, 0, number)).collect::<Outcome<_>>()?;
            join = Some((*graph.after_all(layer.iter())?.empty()?).clone());
        }
        Ok(join.into_iter().collect())
    }

    /// A loop of 100 rounds.
    fn repeat(&self, fill: impl Fn(&Graph) -> Outcome<Vec<Node>>) -> Outcome<Graph> {
        let graph = self.graph()?;
        let going = Test::nonzero(&self.one).limit(100);
        graph.root().while_loop(going, |body| fill(body))?;
        Ok(graph)
    }

    /// Each kernel waits for so many of the fifty before it.
    fn random(&self, count: usize, edges: usize) -> Outcome<Graph> {
        let (graph, mut nodes, mut seed) = (self.graph()?, Vec::<Node>::new(), 1_u64);
        for at in 0..count {
            let mut after: Vec<usize> = Vec::new();
            for _ in 0..edges.min(at) {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                after.push(at - 1 - (seed >> 33) as usize % at.min(50));
            }
            after.sort_unstable();
            after.dedup();
            let after: Vec<&Node> = after.into_iter().map(|other| &nodes[other]).collect();
            nodes.push(self.after(&graph, &after, 0, at)?);
        }
        Ok(graph)
    }

    /// Each kernel waits for so many before it.
    fn chain(&self, length: usize, reach: usize, cycles: u32) -> Outcome<Graph> {
        let graph = self.graph()?;
        self.chain_in(&graph, length, reach, cycles)?;
        Ok(graph)
    }

    /// Returns the last kernel.
    fn chain_in(&self, graph: &Graph, length: usize, reach: usize, cycles: u32) -> Outcome<Vec<Node>> {
        let mut nodes = Vec::<Node>::new();
        for at in 0..length {
            let after: Vec<&Node> = nodes[at.saturating_sub(reach)..].iter().collect();
            nodes.push(self.after(graph, &after, cycles, 0)?);
        }
        Ok(nodes.pop().into_iter().collect())
    }

    fn tree(&self) -> Outcome<Graph> {
        let graph = self.graph()?;
        let mut level: Vec<Node> =
            (0..1024).map(|leaf| self.add(&graph.root(), 0, leaf)).collect::<Outcome<_>>()?;
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| self.after(&graph, &pair.iter().collect::<Vec<_>>(), 0, 0))
                .collect::<Outcome<_>>()?;
        }
        Ok(graph)
    }

    /// Each part waits for its neighbours' step before, and for its own.
    fn stencil(&self) -> Outcome<Graph> {
        const PARTS: usize = 16;
        let (graph, mut before) = (self.graph()?, Vec::<Node>::new());
        for _ in 0..50 {
            let step = |part: usize| {
                let near = part.saturating_sub(1)..(part + 2).min(PARTS);
                let after: Vec<&Node> = before.get(near).unwrap_or_default().iter().collect();
                self.after(&graph, &after, 0, part)
            };
            before = (0..PARTS).map(step).collect::<Outcome<_>>()?;
        }
        Ok(graph)
    }

    /// Blocks with three projections, eight heads, and a gated part, joined by residual sums.
    fn transformer(&self) -> Outcome<Graph> {
        const CYCLES: u32 = 3_600;
        let graph = self.graph()?;
        let after = |nodes: &[&Node], buffer| self.after(&graph, nodes, CYCLES, buffer);
        let mut input = after(&[], 0)?;
        for _ in 0..12 {
            let norm = after(&[&input], 1)?;
            let (query, key, value) = (after(&[&norm], 2)?, after(&[&norm], 3)?, after(&[&norm], 4)?);
            let head = |head: usize| after(&[&query, &key, &value], 5 + head);
            let heads: Vec<Node> = (0..8).map(head).collect::<Outcome<_>>()?;
            let projected = after(&heads.iter().collect::<Vec<_>>(), 13)?;
            let sum = after(&[&input, &projected], 14)?;
            let norm = after(&[&sum], 15)?;
            let (gate, up) = (after(&[&norm], 16)?, after(&[&norm], 17)?);
            let down = after(&[&gate, &up], 18)?;
            input = after(&[&sum, &down], 0)?;
        }
        Ok(graph)
    }

    /// A chain of fills of so many numbers.
    fn fills(&self, numbers: usize) -> Outcome<Graph> {
        let (graph, count) = (self.graph()?, if numbers > 1_024 { 200 } else { 1_000 });
        let mut last: Option<Node> = None;
        for value in 0..count {
            let at = last.as_ref().map_or_else(|| graph.root(), Node::then);
            last = Some((*at.fill(self.buffer(0).slice(..numbers)?, value)?).clone());
        }
        Ok(graph)
    }

    /// A chain of fills, each with a copy behind it.
    fn copies(&self, count: u32, numbers: usize, is_upload: bool) -> Outcome<Graph> {
        let graph = self.graph()?;
        let (device, pinned) = (self.buffer(0).slice(..numbers)?, self.pinned.slice(..numbers)?);
        let mut last: Option<Node> = None;
        for value in 0..count {
            let at = last.as_ref().map_or_else(|| graph.root(), Node::then);
            let fill = at.fill(self.buffer(1).slice(..numbers)?, value)?;
            let copy = match is_upload {
                true => fill.then().copy(pinned, device)?,
                false => fill.then().copy(device, pinned)?,
            };
            last = Some((*copy).clone());
        }
        Ok(graph)
    }

    fn heat(&self) -> Outcome<Graph> {
        let graph = self.graph()?;
        let mut last: Option<Node> = None;
        for step in 0..100 {
            let (from, to) = (&self.plates[step % 2], &self.plates[(step + 1) % 2]);
            let at = last.as_ref().map_or_else(|| graph.root(), Node::then);
            let bar = at.fill(from.slice(step * 512 + 64..step * 512 + 128)?, 1.0)?;
            let config = per_2d((SIDE as usize, SIDE as usize), (32, 8));
            let step = bar.then().launch(&self.heat_step, config, (SIDE, SIDE, 0.24, from, to))?;
            last = Some((*step).clone());
        }
        Ok(graph)
    }

    /// Work on 64 buffers in turn, as sequential code enqueues it.
    fn captured(&self) -> Outcome<Graph> {
        Ok(self.stream.capture(CaptureMode::ThreadLocal, |capture| {
            (0..512)
                .try_for_each(|at| self.work.launch(capture.stream(), per(32, 32), (900, self.buffer(at))))?;
            Ok(())
        })?)
    }
}
