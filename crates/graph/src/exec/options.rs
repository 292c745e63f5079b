//! How executables are made.

use cuda_handles::Stream;
use cuda_sys::CUgraphInstantiate_flags as Flags;

/// How an executable is made; see [`Graph::instantiate_with`](crate::Graph::instantiate_with).
///
/// ```no_run
/// # use cuda_graph::InstantiateOptions;
/// # fn example(graph: &cuda_graph::Graph, stream: &cuda_handles::Stream) -> cuda_graph::Result<()> {
/// let exec = graph.instantiate_with(InstantiateOptions::new().node_priorities().upload_on(stream))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing by themselves"]
pub struct InstantiateOptions {
    auto_free: bool,
    node_priorities: bool,
    device_launch: bool,
    upload: Option<Stream>,
}

impl InstantiateOptions {
    /// Those of [`Graph::instantiate`](crate::Graph::instantiate).
    pub fn new() -> Self {
        Self::default()
    }

    /// Memory that the graph allocates and does not free stays after a
    /// [launch](crate::GraphExec::launch), and the next one frees it at its beginning. Without this
    /// it is freed right behind the launch.
    #[doc(alias = "CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH")]
    pub fn auto_free(mut self) -> Self {
        self.auto_free = true;
        self
    }

    /// Kernel nodes run at the priority in their own launch configuration; without this all run at
    /// that of the stream of the launch.
    #[doc(alias = "CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY")]
    pub fn node_priorities(mut self) -> Self {
        self.node_priorities = true;
        self
    }

    /// Kernels may launch the executable, too. Only kernels, copies and fills of device or pinned
    /// memory, and child graphs of these can be in it.
    ///
    /// A kernel can launch it once it was [uploaded](crate::GraphExec::upload) or launched from the
    /// host.
    #[doc(alias = "CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH")]
    pub fn device_launch(mut self) -> Self {
        self.device_launch = true;
        self
    }

    /// Sends the executable to the device right away, enqueued on `stream`, as
    /// [`GraphExec::upload`](crate::GraphExec::upload) does.
    #[doc(alias = "CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD")]
    pub fn upload_on(mut self, stream: &Stream) -> Self {
        self.upload = Some(stream.clone());
        self
    }

    /// Whether what the graph allocates is freed at the next launch.
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

    /// The stream for the upload.
    #[must_use]
    pub fn upload_stream(&self) -> Option<&Stream> {
        self.upload.as_ref()
    }

    pub(crate) fn flags(&self) -> u64 {
        let flag = |set: bool, flag: Flags| if set { u64::from(flag.0) } else { 0 };
        flag(self.auto_free, Flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)
            | flag(self.node_priorities, Flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)
            | flag(self.device_launch, Flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
            | flag(self.upload.is_some(), Flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
    }
}
