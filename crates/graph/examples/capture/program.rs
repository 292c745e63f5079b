//! The program: a small transformer whose step is written once, against a stream. It runs as it is,
//! and is captured as it is.

use std::error::Error;

use cuda_graph::{Graph, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::{LaunchConfig, kernel, per, per_2d};

use super::layer::{Layer, Linear, Norm};
use super::task::Task;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Threads of a block that sums; the kernel has room for this many.
pub(crate) const BLOCK: u32 = 128;

kernel! {
    // SAFETY: the kernels in the file have these parameters. `layer_norm` accesses `width` numbers
    // of each of `rows` rows, by blocks of 128 threads, for which it has room. `linear` accesses
    // `rows` rows of `depth` and of `columns` numbers, and a matrix of `depth` such rows.
    // `attention` accesses `tokens` rows of `heads * size` numbers and has room for 128 tokens. The
    // others access `n` numbers.
    unsafe in "../kernels/capture.ptx";

    struct Kernels;

    fn layer_norm(rows: u32, width: u32, scale: In<f32>, shift: In<f32>, from: In<f32>, to: Out<f32>)
    where width <= 1_000_000, scale.len() >= width, shift.len() >= width,
        from.len() >= rows * width, to.len() >= rows * width, grid.x >= rows,
        grid.y * grid.z == 1, block.x == 128, block.product() == 128;

    fn linear(
        rows: u32, columns: u32, depth: u32,
        weights: In<f32>, bias: In<f32>, from: In<f32>, to: Out<f32>
    )
    where weights.len() >= depth * columns, bias.len() >= columns, from.len() >= rows * depth,
        to.len() >= rows * columns, grid.x * block.x >= columns, grid.y * block.y >= rows,
        grid.z * block.z == 1;

    fn attention(
        tokens: u32, heads: u32, size: u32, scale: f32,
        queries: In<f32>, keys: In<f32>, values: In<f32>, to: Out<f32>
    )
    where tokens <= 128, size <= 1_000_000, queries.len() >= tokens * heads * size,
        keys.len() >= tokens * heads * size, values.len() >= tokens * heads * size,
        to.len() >= tokens * heads * size, grid.x >= tokens, grid.y >= heads, grid.z == 1,
        block.y * block.z == 1;

    fn gelu(n: u32, numbers: InOut<f32>)
    where numbers.len() >= n, grid.x * block.x >= n, grid.y * grid.z * block.y * block.z == 1;

    fn add(n: u32, from: In<f32>, to: InOut<f32>)
    where from.len() >= n, to.len() >= n, grid.x * block.x >= n,
        grid.y * grid.z * block.y * block.z == 1;
}

/// The transformer on the device. A step takes the rows through all layers, in place.
pub(crate) struct Transformer {
    task: Task,
    kernels: Kernels,
    layers: Vec<Layer<Buffer<f32>>>,
    stream: Stream,
    /// The streams of keys and of values, which do not wait for queries.
    branches: [Stream; 2],
    rows: Buffer<f32>,
}

impl Transformer {
    pub(crate) fn new(context: &Context, task: Task, layers: &[Layer<Vec<f32>>]) -> Result<Self> {
        let stream = context.stream()?;
        let layers = layers.iter().map(|layer| layer.moved(|numbers| stream.upload(numbers)));
        let layers = layers.collect::<cuda_handles::Result<_>>()?;
        Ok(Self {
            task,
            kernels: Kernels::load(context)?,
            layers,
            branches: [context.stream()?, context.stream()?],
            rows: stream.zeros(task.tokens * task.width())?,
            stream,
        })
    }

    /// The stream of the steps.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Replaces the rows, after the steps enqueued so far.
    pub(crate) fn load(&self, prompt: &[f32]) -> Result<()> {
        Ok(self.rows.write_blocking(&self.stream, prompt)?)
    }

    /// Waits for the steps enqueued so far, and reads the rows.
    pub(crate) fn rows(&self) -> Result<Vec<f32>> {
        Ok(self.rows.read_blocking(&self.stream)?)
    }

    /// The graph of a step.
    pub(crate) fn capture(&self, mode: CaptureMode) -> Result<Graph> {
        let (graph, ()) = self.stream.try_capture(mode, |capture| self.step(capture.stream()))?;
        Ok(graph)
    }

    /// Enqueues a step. Nothing from here on knows of captures.
    pub(crate) fn step(&self, stream: &Stream) -> Result<()> {
        self.layers.iter().try_for_each(|layer| self.block(stream, layer))
    }

    fn block(&self, stream: &Stream, layer: &Layer<Buffer<f32>>) -> Result<()> {
        let Self { kernels, rows, .. } = self;
        let [before_attention, before_hidden] = &layer.norms;

        let attended = self.attend(stream, layer, &self.norm(stream, before_attention, rows)?)?;
        let attended = self.linear(stream, &layer.out, &attended)?;
        kernels.add.launch(stream, per(rows.len(), 256), (rows.len() as u32, &attended, rows))?;

        let hidden = self.norm(stream, before_hidden, rows)?;
        let hidden = self.linear(stream, &layer.up, &hidden)?;
        kernels.gelu.launch(stream, per(hidden.len(), 256), (hidden.len() as u32, &hidden))?;
        let down = self.linear(stream, &layer.down, &hidden)?;
        Ok(kernels.add.launch(stream, per(rows.len(), 256), (rows.len() as u32, &down, rows))?)
    }

    /// Attention, with keys and values on streams of their own.
    fn attend(
        &self,
        stream: &Stream,
        layer: &Layer<Buffer<f32>>,
        normed: &Buffer<f32>,
    ) -> Result<Buffer<f32>> {
        let [for_keys, for_values] = &self.branches;
        self.branches.iter().try_for_each(|branch| branch.wait_for(stream))?;
        let queries = self.linear(stream, &layer.query, normed)?;
        let keys = self.linear(for_keys, &layer.key, normed)?;
        let values = self.linear(for_values, &layer.value, normed)?;
        self.branches.iter().try_for_each(|branch| stream.wait_for(branch))?;

        let Task { tokens, heads, size, .. } = self.task;
        let [tokens, heads, size] = [tokens, heads, size].map(|number| number as u32);
        let to = stream.alloc(queries.len())?;
        let config = LaunchConfig::new((tokens, heads), 32);
        let arguments = (tokens, heads, size, self.task.scale(), &queries, &keys, &values, &to);
        self.kernels.attention.launch(stream, config, arguments)?;
        Ok(to)
    }

    fn norm(&self, stream: &Stream, norm: &Norm<Buffer<f32>>, from: &Buffer<f32>) -> Result<Buffer<f32>> {
        let (rows, width) = (self.task.tokens as u32, self.task.width() as u32);
        let to = stream.alloc(from.len())?;
        let arguments = (rows, width, &norm.scale, &norm.shift, from, &to);
        self.kernels.layer_norm.launch(stream, LaunchConfig::new(rows, BLOCK), arguments)?;
        Ok(to)
    }

    fn linear(&self, stream: &Stream, part: &Linear<Buffer<f32>>, from: &Buffer<f32>) -> Result<Buffer<f32>> {
        let (rows, columns) = (self.task.tokens, part.bias.len());
        let depth = from.len() / rows;
        let to = stream.alloc(rows * columns)?;
        let arguments = (rows as u32, columns as u32, depth as u32, &part.weights, &part.bias, from, &to);
        self.kernels.linear.launch(stream, per_2d((columns, rows), (32, 4)), arguments)?;
        Ok(to)
    }
}
