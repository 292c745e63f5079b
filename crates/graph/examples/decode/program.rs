//! The program: the step of a token, written once and captured, with the position of the token and
//! the cache of its speaker given in different ways.

use std::error::Error;

use cuda_graph::capture::{Capturing, GraphBuilder, Primary};
use cuda_graph::{Graph, GraphParam, StreamExt};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::{Argument, In, LaunchConfig, Out, kernel};

use super::model::{self, Layer, SPEAKERS, Sizes};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

type Capture = GraphBuilder<Primary, Capturing>;

kernel! {
    // SAFETY: the kernels in the file have these parameters. They access `width` numbers of each
    // row, three times as many where a row is projected, and matrices of `width` such rows. A cache
    // has a part for each layer, with twice `width` numbers for each of `capacity` positions.
    // `attend` has room for 256 positions.
    unsafe in "../kernels/decode.ptx";

    struct Kernels;

    fn normalise(width: u32, row: In<f32>, to: Out<f32>)
    where row.len() >= width, to.len() >= width, grid.product() == 1, block.y * block.z == 1;

    fn project(width: u32, weights: In<f32>, row: In<f32>, to: Out<f32>)
    where width <= 1_000_000, weights.len() >= width * 3 * width, row.len() >= width,
        to.len() >= 3 * width, grid.product() == 1, block.y * block.z == 1;

    fn store(width: u32, capacity: u32, layer: u32, position: u32, projected: In<f32>, cache: Out<f32>)
    where width <= 1_000_000, projected.len() >= 3 * width, position < capacity,
        cache.len() >= (layer + 1) * capacity * 2 * width, grid.product() == 1, block.y * block.z == 1;

    fn attend(
        width: u32, capacity: u32, layer: u32, position: u32, query: In<f32>, cache: In<f32>, to: Out<f32>
    )
    where width <= 1_000_000, query.len() >= width, position < 256, position < capacity,
        cache.len() >= (layer + 1) * capacity * 2 * width, to.len() >= width, grid.product() == 1,
        block.y * block.z == 1;

    /// # Safety
    /// `place` holds a position and the address of a cache, which lives as long as the kernel may
    /// run. The conditions of `store` hold for both.
    unsafe fn store_from(width: u32, capacity: u32, layer: u32, place: In<u64>, projected: In<f32>)
    where width <= 1_000_000, place.len() >= 2, projected.len() >= 3 * width, grid.product() == 1,
        block.y * block.z == 1;

    /// # Safety
    /// As for `store_from`, with the conditions of `attend`.
    unsafe fn attend_from(
        width: u32, capacity: u32, layer: u32, place: In<u64>, query: In<f32>, to: Out<f32>
    )
    where width <= 1_000_000, place.len() >= 2, query.len() >= width, to.len() >= width,
        grid.product() == 1, block.y * block.z == 1;

    fn mix(width: u32, weights: In<f32>, attended: In<f32>, row: InOut<f32>)
    where width <= 1_000_000, weights.len() >= width * width, attended.len() >= width,
        row.len() >= width, grid.product() == 1, block.y * block.z == 1;

    fn activate(width: u32, row: InOut<f32>)
    where row.len() >= width, grid.product() == 1, block.y * block.z == 1;
}

/// The model on the device.
pub(crate) struct Decoder {
    pub(crate) sizes: Sizes,
    /// The stream of all work, and the home of all memory.
    pub(crate) stream: Stream,
    kernels: Kernels,
    layers: Vec<Layer<Buffer<f32>>>,
    /// The row of the token, which goes through all layers.
    row: Buffer<f32>,
    normalised: Buffer<f32>,
    /// Query, key and value.
    projected: Buffer<f32>,
    attended: Buffer<f32>,
}

/// What all tokens lead to.
#[derive(Debug, PartialEq)]
pub(crate) struct Results {
    pub(crate) row: Vec<f32>,
    pub(crate) caches: Vec<Vec<f32>>,
}

/// A graph of a step with its parameters.
pub(crate) struct StepGraph {
    pub(crate) graph: Graph,
    pub(crate) position: GraphParam<u32>,
    pub(crate) cache: GraphParam<[f32]>,
}

impl Decoder {
    pub(crate) fn new(context: &Context, sizes: Sizes) -> Result<Self> {
        let stream = context.stream()?;
        let layers = model::layers(sizes).into_iter().map(|layer| {
            Ok(Layer { project: stream.upload(&layer.project)?, mix: stream.upload(&layer.mix)? })
        });
        let width = sizes.width as usize;
        Ok(Self {
            sizes,
            kernels: Kernels::load(context)?,
            layers: layers.collect::<Result<_>>()?,
            row: stream.zeros(width)?,
            normalised: stream.zeros(width)?,
            projected: stream.zeros(3 * width)?,
            attended: stream.zeros(width)?,
            stream,
        })
    }

    /// Starts from the beginning: the first row, and an empty cache for each speaker.
    pub(crate) fn start(&self) -> Result<Vec<Buffer<f32>>> {
        self.row.write_blocking(&self.stream, &model::first_row(self.sizes))?;
        let cache = || Ok(self.stream.zeros(self.sizes.cache_len())?);
        (0..SPEAKERS).map(|_| cache()).collect()
    }

    /// Waits for all launches, and reads what they lead to.
    pub(crate) fn results(&self, caches: &[Buffer<f32>]) -> Result<Results> {
        let row = self.row.read_blocking(&self.stream)?;
        let caches = caches.iter().map(|cache| Ok(cache.read_blocking(&self.stream)?));
        Ok(Results { row, caches: caches.collect::<Result<_>>()? })
    }

    /// The graph of a step. Its position and its cache are parameters, with these values at first.
    pub(crate) fn graph_with_parameters(&self, position: u32, cache: &Buffer<f32>) -> Result<StepGraph> {
        let capture = self.stream.graph_builder().begin()?;
        let (position, cache) = (capture.param(position)?, capture.param(cache)?);
        self.step(&capture, |layer| self.remember(&capture, layer, &position, &cache))?;
        Ok(StepGraph { graph: capture.end()?.into_graph(), position, cache })
    }

    /// The graph of the step at a position of a cache, and of no other.
    pub(crate) fn graph_of(&self, position: u32, cache: &Buffer<f32>) -> Result<Graph> {
        let capture = self.stream.graph_builder().begin()?;
        self.step(&capture, |layer| self.remember(&capture, layer, position, cache))?;
        Ok(capture.end()?.into_graph())
    }

    /// The graph of a step that reads its position and the address of its cache from memory.
    ///
    /// # Safety
    /// At each launch, `place` holds a position below the capacity and the address of a cache from
    /// [`start`](Self::start), which lives as long as the launch.
    pub(crate) unsafe fn graph_from_memory(&self, place: &Buffer<u64>) -> Result<Graph> {
        let capture = self.stream.graph_builder().begin()?;
        // SAFETY: the caller promises this.
        self.step(&capture, |layer| unsafe { self.remember_from(&capture, layer, place) })?;
        Ok(capture.end()?.into_graph())
    }

    /// Captures all layers. `remember` captures the two kernels that need position and cache.
    fn step(&self, capture: &Capture, remember: impl Fn(u32) -> Result<()>) -> Result<()> {
        let Self { kernels, row, normalised, projected, attended, .. } = self;
        let width = self.sizes.width;
        for (number, layer) in (0..).zip(&self.layers) {
            capture.launch(&kernels.normalise, self.block(), (width, row, normalised))?;
            capture.launch(&kernels.project, self.block(), (width, &layer.project, normalised, projected))?;
            remember(number)?;
            capture.launch(&kernels.mix, self.block(), (width, &layer.mix, attended, row))?;
            capture.launch(&kernels.activate, self.block(), (width, row))?;
        }
        Ok(())
    }

    /// Captures store and attention. Position and cache are values, or graph parameters.
    fn remember<'a>(
        &'a self,
        capture: &Capture,
        layer: u32,
        position: impl Argument<'a, u32> + Copy,
        cache: impl Argument<'a, Out<f32>> + Argument<'a, In<f32>> + Copy,
    ) -> Result<()> {
        let Self { kernels, projected, attended, .. } = self;
        let (width, capacity) = (self.sizes.width, self.sizes.capacity());
        let stored = (width, capacity, layer, position, projected, cache);
        capture.launch(&kernels.store, self.block(), stored)?;
        let query = (width, capacity, layer, position, projected, cache, attended);
        Ok(capture.launch(&kernels.attend, self.block(), query)?)
    }

    /// Captures store and attention. Position and cache are in memory.
    ///
    /// # Safety
    /// As for [`graph_from_memory`](Self::graph_from_memory).
    unsafe fn remember_from(&self, capture: &Capture, layer: u32, place: &Buffer<u64>) -> Result<()> {
        let Self { kernels, projected, attended, .. } = self;
        let (width, capacity) = (self.sizes.width, self.sizes.capacity());
        let stored = (width, capacity, layer, place, projected);
        let query = (width, capacity, layer, place, projected, attended);
        // SAFETY: the caller promises this.
        unsafe {
            capture.launch_unchecked(&kernels.store_from, self.block(), stored)?;
            Ok(capture.launch_unchecked(&kernels.attend_from, self.block(), query)?)
        }
    }

    /// One block, with a thread for each number of a row.
    fn block(&self) -> LaunchConfig {
        LaunchConfig::new(1, self.sizes.width)
    }
}
