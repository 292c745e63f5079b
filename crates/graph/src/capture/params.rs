//! Graph parameters in captures: making them, and the calls that take them.
//!
//! A parameter belongs to the graph that the capture is for. Without a target, that graph does not
//! exist before the end: its number is taken early (`early_params.rs`), and the end gives it to the
//! driver's graph, or to the target that is made meanwhile.
//!
//! The record of a call with parameters carries its binding as a tag. The end binds the node that
//! the record describes (`adopted.rs`), and copies of nodes are bound as their originals
//! (`copied.rs`).

use std::sync::Arc;

use cuda_handles::internal::Tag;
use cuda_handles::{Element, Placeholder, Slice};
use cuda_launch::{LaunchConfig, StreamConfig};

use crate::capture::builder::GraphBuilder;
use crate::capture::kind::{Capturing, Kind};
use crate::error::Result;
use crate::node::{memcpy, memset};
use crate::param::bind::{NewBinding, of_copy, of_fill};
use crate::param::config::{ConfigSource, NodeConfig, ParamConfig};
use crate::param::graph_param::{GraphParam, IntoParam, stored};

/// Memory that a captured call can use: whatever a stream can use, or a [`GraphParam`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory that a captured call can use as elements of type `{T}`",
    label = "not memory for a captured call",
    note = "there are `&Buffer<T>`, `Slice<T>`, `&SharedHostBuffer<T>`, and parameters, `&GraphParam<[T]>`",
    note = "memory of the graph itself (`&GraphBuffer<T>`) is for nodes that are added by hand (`GraphBuilder::add`)"
)]
pub trait CaptureMemory<'a, T> {
    /// The memory, or the memory that the parameter was made with.
    #[doc(hidden)]
    fn slice(self) -> Slice<'a, T>;

    /// The parameter.
    #[doc(hidden)]
    #[inline]
    fn param(&self) -> Option<Placeholder> {
        None
    }
}

impl<'a, T, M: Into<Slice<'a, T>>> CaptureMemory<'a, T> for M {
    #[inline]
    fn slice(self) -> Slice<'a, T> {
        self.into()
    }
}

impl<'a, T: Element> CaptureMemory<'a, T> for &'a GraphParam<[T]> {
    fn slice(self) -> Slice<'a, T> {
        self.memory()
    }

    fn param(&self) -> Option<Placeholder> {
        Some(self.placeholder)
    }
}

/// A launch configuration for a captured launch: a [`LaunchConfig`], a [`StreamConfig`], or one
/// that depends on a [`GraphParam`].
pub trait CaptureConfig<'e> {
    /// The configuration with the value that the parameter was made with.
    #[doc(hidden)]
    fn stream_config(self) -> StreamConfig<'e>;

    /// The parameter that it depends on.
    #[doc(hidden)]
    #[inline]
    fn source(&self) -> Option<ConfigSource> {
        None
    }
}

impl<'e> CaptureConfig<'e> for StreamConfig<'e> {
    #[inline]
    fn stream_config(self) -> StreamConfig<'e> {
        self
    }
}

impl<'e> CaptureConfig<'e> for LaunchConfig {
    #[inline]
    fn stream_config(self) -> StreamConfig<'e> {
        self.into()
    }
}

impl<'e> CaptureConfig<'e> for ParamConfig {
    fn stream_config(self) -> StreamConfig<'e> {
        self.config().into()
    }

    fn source(&self) -> Option<ConfigSource> {
        NodeConfig::source(self)
    }
}

impl<'e> CaptureConfig<'e> for &GraphParam<LaunchConfig> {
    fn stream_config(self) -> StreamConfig<'e> {
        self.config().into()
    }

    fn source(&self) -> Option<ConfigSource> {
        NodeConfig::source(self)
    }
}

impl<K: Kind> GraphBuilder<K, Capturing> {
    /// A parameter of the graph that is captured; see [`Graph::param`](crate::Graph::param). Calls
    /// that are captured here, on forks and in bodies take it in the place of an argument, memory
    /// or value. It is set in the executables of the graph.
    ///
    /// A first value that was allocated in the capture is held by its parameter, as by a buffer: no
    /// later allocation, and no capture with the same [scratch memory], is given it. Memory that
    /// the same calls use beside their parameters is given on.
    ///
    /// [scratch memory]: cuda_handles::capture::Scratch
    ///
    /// A capture into an existing graph takes the parameters of that graph as well. If such a
    /// capture fails, parameters that were made here stay, unused.
    ///
    /// ```no_run
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     fn scale(n: u32, factor: f32, values: InOut<f32>)
    /// #     where values.len() >= n, grid.x * block.x >= n;
    /// # }
    /// # use cuda_graph::{Result, StreamExt};
    /// # use cuda_handles::{Buffer, Stream};
    /// # fn main() {}
    /// # fn example(
    /// #     stream: &Stream, scale: &scale, x: &Buffer<f32>, y: &Buffer<f32>
    /// # ) -> Result<()> {
    /// let capture = stream.graph_builder().begin()?;
    /// let values = capture.param(x)?;
    /// capture.fill(&values, 1.0)?;
    /// capture.launch(scale, per(values.len(), 256), (values.len(), 2.0, &values))?;
    /// let mut exec = capture.end()?.instantiate()?;
    /// exec.launch(stream)?;
    /// exec.launch_with(stream, ((&values, y),))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The memory is of another context than the home of the graph; the context is lost;
    /// [`CaptureError::Over`]: the capture has ended.
    ///
    /// [`CaptureError::Over`]: crate::CaptureError::Over
    #[doc(alias = "graph parameter")]
    pub fn param<V: IntoParam>(&self, value: V) -> Result<GraphParam<V::Param>> {
        self.open()?.context().ensure_usable()?;
        GraphParam::make(self.state.session.home(), value, |value| self.state.session.add_param(value))
    }

    /// The tag of a call that takes parameters of the graph.
    pub(super) fn tag(&self, binding: Option<NewBinding>) -> Result<Option<Tag>> {
        let Some(mut binding) = binding else { return Ok(None) };
        self.state.session.ensure_own_params(&binding)?;
        // The node's memory that is no parameter may be scratch memory, which later allocations of
        // the capture, and captures with the same scratch memory, are to be given.
        let capture = self.state.session.id();
        binding.each_memory(|memory| memory.allocation.keep_as_capture(capture));
        Ok(Some(Arc::new(binding)))
    }

    /// Captures a fill with parameters.
    #[cold]
    pub(super) fn fill_bound<T: Element>(
        &self,
        memory: Slice<'_, T>,
        value: T,
        [target, filled]: [Option<Placeholder>; 2],
    ) -> Result<()> {
        // Empty memory makes no node, and the parameter would have no use.
        let (layout, _) = memset::linear(self.open()?.context(), memory, value)?;
        let tag = self.tag(of_fill::<T>(target, filled, stored(memory), layout, false)?)?;
        self.capture(|stream| stream.fill_tagged(memory, value, tag))
    }

    /// Captures a fill with zeros of a parameter's memory.
    #[cold]
    pub(super) fn clear_bound<T: Element>(&self, memory: Slice<'_, T>, target: Placeholder) -> Result<()> {
        let (layout, _) = memset::cleared(self.open()?.context(), memory)?;
        let tag = self.tag(of_fill::<T>(Some(target), None, stored(memory), layout, true)?)?;
        self.capture(|stream| stream.clear_tagged(memory, tag))
    }

    /// Captures a copy with parameters.
    #[cold]
    pub(super) fn copy_bound<T: Element>(
        &self,
        source: Slice<'_, T>,
        destination: Slice<'_, T>,
        placeholders: [Option<Placeholder>; 2],
    ) -> Result<()> {
        // Refuses a copy of nothing, as for fills.
        memcpy::linear(self.open()?.context(), source, destination)?;
        let sides = || (stored(source), stored(destination));
        let tag = self.tag(of_copy::<T>(placeholders, sides)?)?;
        self.capture(|stream| stream.copy_tagged(source, destination, tag))
    }
}
