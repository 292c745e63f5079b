//! Options of an executable.

use cuda_handles::Stream;
use cuda_sys::CUgraphInstantiate_flags as Flags;

use crate::shape::by_default::shape_by_default;
use crate::shape::options::{Order, Shape};

/// Options of an executable; see [`Graph::instantiate_with`](crate::Graph::instantiate_with).
///
/// ```no_run
/// # use cuda_graph::InstantiateOptions;
/// # fn example(
/// #     graph: &cuda_graph::Graph, stream: &cuda_handles::Stream
/// # ) -> cuda_graph::Result<()> {
/// let options = InstantiateOptions::new().node_priorities().upload_on(stream);
/// let exec = graph.instantiate_with(options)?;
/// # Ok(())
/// # }
/// ```
///
/// | Option | Effect | Driver flag |
/// | --- | --- | --- |
/// | [`auto_free`] | a launch first frees memory that the last one left | `AUTO_FREE_ON_LAUNCH` |
/// | [`node_priorities`] | kernel nodes run at their own priorities | `USE_NODE_PRIORITY` |
/// | [`device_launch`] | kernels may launch the executable | `DEVICE_LAUNCH` |
/// | [`upload_on`] | the executable is uploaded right away | `UPLOAD` |
/// | [`shape`] | the executable is made of a graph of another shape | |
/// | [`programmatic_edges`] | with programmatic edges, or without | |
/// | [`fills_by_kernels`], [`copies_by_kernels`] | kernels take the place of nodes that the host submits | |
/// | [`order`] | the executable orders its nodes by their data alone | |
///
/// [`auto_free`]: Self::auto_free
/// [`node_priorities`]: Self::node_priorities
/// [`device_launch`]: Self::device_launch
/// [`upload_on`]: Self::upload_on
/// [`shape`]: Self::shape
/// [`programmatic_edges`]: Self::programmatic_edges
/// [`fills_by_kernels`]: Self::fills_by_kernels
/// [`copies_by_kernels`]: Self::copies_by_kernels
/// [`order`]: Self::order
#[derive(Clone, Debug)]
#[must_use = "options do nothing by themselves"]
#[doc(alias = "CUgraphInstantiate_flags")]
#[doc(alias = "cudaGraphInstantiateFlags")]
#[doc(alias = "CUDA_GRAPH_INSTANTIATE_PARAMS")]
pub struct InstantiateOptions {
    auto_free: bool,
    node_priorities: bool,
    device_launch: bool,
    upload: Option<Stream>,
    shape: Shape,
    order: Order,
    assume_progress: bool,
    /// `None` for the choice of the shape.
    programmatic_edges: Option<bool>,
    fills_by_kernels: Option<bool>,
    copies_by_kernels: Option<bool>,
}

impl Default for InstantiateOptions {
    fn default() -> Self {
        Self {
            auto_free: false,
            node_priorities: false,
            device_launch: false,
            upload: None,
            shape: shape_by_default(),
            order: Order::AsDrawn,
            assume_progress: false,
            programmatic_edges: None,
            fills_by_kernels: None,
            copies_by_kernels: None,
        }
    }
}

impl InstantiateOptions {
    /// The options of [`Graph::instantiate`](crate::Graph::instantiate): none.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps memory that the graph allocates and does not free after a
    /// [launch](crate::GraphExec::launch); the next launch frees it first. Without this option it
    /// is freed right behind the launch.
    #[doc(alias = "CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH")]
    #[doc(alias = "cudaGraphInstantiateFlagAutoFreeOnLaunch")]
    pub fn auto_free(mut self) -> Self {
        self.auto_free = true;
        self
    }

    /// Runs each kernel node at the priority in its own launch configuration. Without this option
    /// all run at the priority of the launch's stream.
    #[doc(alias = "CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY")]
    #[doc(alias = "cudaGraphInstantiateFlagUseNodePriority")]
    pub fn node_priorities(mut self) -> Self {
        self.node_priorities = true;
        self
    }

    /// Lets kernels launch the executable, too. Such a graph can hold only kernels, copies and
    /// fills of device or pinned memory, and child graphs of these.
    ///
    /// A kernel can launch it once it was [uploaded](crate::GraphExec::upload) or launched from the
    /// host.
    #[doc(alias = "CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH")]
    #[doc(alias = "cudaGraphInstantiateFlagDeviceLaunch")]
    #[doc(alias = "device graph launch")]
    pub fn device_launch(mut self) -> Self {
        self.device_launch = true;
        self
    }

    /// Uploads the executable to the device right away, enqueued on `stream`, as
    /// [`GraphExec::upload`](crate::GraphExec::upload) does.
    #[doc(alias = "CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD")]
    #[doc(alias = "cudaGraphInstantiateFlagUpload")]
    pub fn upload_on(mut self, stream: &Stream) -> Self {
        self.upload = Some(stream.clone());
        self
    }

    /// Makes the executable of a graph of another shape that does the same. The default is
    /// [`Shape::AsBuilt`].
    ///
    /// Where the host decides ([`HostLoopExec`](crate::HostLoopExec)), the option does nothing.
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// Lets [shaping](Self::shape) make edges between kernels
    /// [programmatic](crate::EdgeKind::Programmatic). The default is yes for [`Shape::Auto`], and
    /// no for the other shapes.
    ///
    /// The device sets up the blocks of the second kernel while the last ones of the first drain,
    /// so chains of short kernels run faster. The second kernel still begins once the first has
    /// ended and its writes are visible. For that both kernels wait at their entry: shaping does
    /// this for kernels whose library was loaded by
    /// [`Library::load_waiting`](cuda_handles::Library::load_waiting), declared as `fn` by
    /// [`kernel!`](cuda_launch::kernel), without launch attributes, and where the first one uses
    /// memory of its own device alone ([pooled or plain](cuda_handles::MemoryKind)). All other
    /// edges stay full.
    ///
    /// A kernel at such an edge cannot be disabled, and cannot become one that does not wait, or
    /// one that uses other memory ([`UpdateError::NotPossible`](crate::UpdateError::NotPossible)).
    /// A node that a [graph parameter enables](crate::KernelNode::enabled_by) keeps full edges.
    ///
    /// Needs CUDA 12.3; with an older driver all edges stay full.
    #[doc(alias = "CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC")]
    #[doc(alias = "programmatic dependent launch")]
    pub fn programmatic_edges(mut self, make: bool) -> Self {
        self.programmatic_edges = Some(make);
        self
    }

    /// Makes the executable of a graph that orders nodes by their data alone. The default is
    /// [`Order::AsDrawn`].
    ///
    /// The order comes first, then the [shape](Self::shape). With [`Shape::AsBuilt`], edges that
    /// follow from others are left out as well, and nothing else changes. Graphs that are not
    /// shaped keep their order, and so does a graph that is too large to find another one. The
    /// [report](crate::GraphExec::shape_report) says so.
    ///
    /// Where the host decides ([`HostLoopExec`](crate::HostLoopExec)), the option does nothing.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Lets shaping order nodes anew, and put kernels in place of other nodes, beside kernels that
    /// may wait for other kernels.
    ///
    /// Kernels that run side by side may wait for one another, as those of a collective do. Ordered
    /// one after the other, they would wait for ever. So [shaping](Self::shape) orders nodes anew
    /// only beside kernels that were declared as `fn` by [`kernel!`](cuda_launch::kernel), which
    /// wait for no other. With this option it takes all kernels of the graph for such ones.
    pub fn assume_progress(mut self) -> Self {
        self.assume_progress = true;
        self
    }

    /// Whether [shaping](Self::shape) puts kernels of this library in place of small fills. It does
    /// by default with [`Shape::Auto`], and not with other shapes. With [`Shape::AsBuilt`] the
    /// option does nothing.
    ///
    /// The host submits a fill of less than 8 KiB at every launch, which takes 0.65 µs of the call.
    /// The device starts a kernel by itself; but a kernel takes room on a multiprocessor, which a
    /// fill does not.
    ///
    /// A kernel runs in place of a fill of pooled, plain or pinned memory that this library has
    /// allocated, unless another kernel runs beside it that may wait for kernels
    /// ([`assume_progress`](Self::assume_progress)). Whatever goes by the node, such as updates and
    /// graph parameters, goes on as with the fill, for memory of these kinds. An update to other
    /// memory, such as managed memory, is refused
    /// ([`UpdateError::NotPossible`](crate::UpdateError::NotPossible)).
    #[doc(alias = "memset")]
    pub fn fills_by_kernels(mut self, by_kernels: bool) -> Self {
        self.fills_by_kernels = Some(by_kernels);
        self
    }

    /// As [`fills_by_kernels`](Self::fills_by_kernels), for copies between device and pinned
    /// memory, in either direction and in one to three dimensions.
    ///
    /// The host submits each of these at every launch, which takes 1.3 to 3 µs of the call. Copies
    /// of more than 4 MiB stay as they are: there the kernel is no faster. The limit is lower where
    /// rows of source and destination begin at different places in 16 aligned bytes. A kernel takes
    /// room on multiprocessors while it copies, which a copy engine does not.
    #[doc(alias = "memcpy")]
    pub fn copies_by_kernels(mut self, by_kernels: bool) -> Self {
        self.copies_by_kernels = Some(by_kernels);
        self
    }

    /// Whether a launch first frees graph memory that the launch before left.
    #[must_use]
    pub fn is_auto_free(&self) -> bool {
        self.auto_free
    }

    /// Whether kernel nodes run at priorities of their own.
    #[must_use]
    pub fn has_node_priorities(&self) -> bool {
        self.node_priorities
    }

    /// Whether kernels may launch the executable.
    #[must_use]
    pub fn is_for_device_launch(&self) -> bool {
        self.device_launch
    }

    /// The stream of the upload, if there is one.
    #[must_use]
    pub fn upload_stream(&self) -> Option<&Stream> {
        self.upload.as_ref()
    }

    /// The shape of the executable.
    #[must_use]
    pub fn wanted_shape(&self) -> Shape {
        self.shape
    }

    /// The order of the executable's nodes.
    #[must_use]
    pub fn wanted_order(&self) -> Order {
        self.order
    }

    /// Whether the executable is made of another graph, as far as that is possible.
    pub(crate) fn is_shaped(&self) -> bool {
        self.shape != Shape::AsBuilt || self.order != Order::AsDrawn
    }

    /// Whether shaping takes all kernels for ones that wait for no other.
    #[must_use]
    pub fn assumes_progress(&self) -> bool {
        self.assume_progress
    }

    /// Whether shaping makes edges programmatic.
    #[must_use]
    pub fn makes_programmatic_edges(&self) -> bool {
        self.of_shape(self.programmatic_edges)
    }

    /// Whether shaping puts kernels in place of small fills.
    #[must_use]
    pub fn runs_fills_by_kernels(&self) -> bool {
        self.of_shape(self.fills_by_kernels)
    }

    /// Whether shaping puts kernels in place of copies between device and pinned memory.
    #[must_use]
    pub fn runs_copies_by_kernels(&self) -> bool {
        self.of_shape(self.copies_by_kernels)
    }

    /// What the shape makes of an option.
    fn of_shape(&self, option: Option<bool>) -> bool {
        match self.shape {
            Shape::AsBuilt => false,
            Shape::Reduced | Shape::Lanes(_) => option.unwrap_or(false),
            Shape::Auto => option.unwrap_or(true),
        }
    }

    /// The options that matter for runs: all without the upload.
    pub(crate) fn of_runs(&self) -> RunOptions {
        let flags = self.flags() & !u64::from(Flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD.0);
        RunOptions {
            flags,
            shape: self.shape,
            order: self.order,
            assume_progress: self.assume_progress,
            programmatic_edges: self.makes_programmatic_edges(),
            fills_by_kernels: self.runs_fills_by_kernels(),
            copies_by_kernels: self.runs_copies_by_kernels(),
        }
    }

    /// The driver's flags.
    pub(crate) fn flags(&self) -> u64 {
        let flag = |set: bool, flag: Flags| if set { u64::from(flag.0) } else { 0 };
        flag(self.auto_free, Flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)
            | flag(self.node_priorities, Flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)
            | flag(self.device_launch, Flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
            | flag(self.upload.is_some(), Flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
    }
}

/// The options of an executable that matter for its runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RunOptions {
    /// The driver's flags.
    flags: u64,
    shape: Shape,
    order: Order,
    assume_progress: bool,
    programmatic_edges: bool,
    fills_by_kernels: bool,
    copies_by_kernels: bool,
}
