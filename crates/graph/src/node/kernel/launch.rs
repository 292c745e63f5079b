//! Launches of kernels as nodes: new ones, and others for nodes that are there.

use std::sync::Arc;

use cuda_handles::{Allocation, GraphHandle, Kernel, Owner, WrongContext};
use cuda_launch::{Accesses, Arguments, ArgumentsOf, AttributeList, LaunchConfig, SafeKernel, TypedKernel};
use smallvec::SmallVec;

use super::attribute::set_all;
use super::relaunch::Relaunch;
use crate::build::frontier::Frontier;
use crate::build::insertion::NewNode;
use crate::error::Result;
use crate::error::wrong_context::ensure;
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::node::kernel::KernelNode;
use crate::node_kind::NodeKind;
use crate::state::AddedNode;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::owners::Uses;
use crate::state::params::KernelHandles;
use crate::state::params::NodeParams;
use crate::state::raw_params::kernel_params;
use cuda_sys::{CUgraphNode, CUgraphNodeParams, Call};

/// A launch, checked, with what it keeps alive besides its kernel.
struct PreparedLaunch {
    node_params: NodeParams,
    owners: Owners,
    attributes: AttributeList,
}

impl KernelNode {
    /// Launches a typed kernel, the same or another one, from now on. The node lets go of what it
    /// used before; executables made before go on as they are.
    ///
    /// Attributes are those of the configuration; what it does not set gets the driver's default.
    /// Those that a [`LaunchConfig`] does not have, set by [`set_attribute`](Self::set_attribute),
    /// are left to the driver.
    ///
    /// Stands on `cuGraphNodeSetParams`, CUDA 12.2; with attributes before or after also on
    /// `cuGraphKernelNodeSetAttribute`, CUDA 11.0, and `cuGraphKernelNodeGetParams`, CUDA 12.0.
    ///
    /// # Errors
    /// As [`Frontier::launch`]; the node is as it was then. If the driver refuses both an attribute
    /// and the way back, the graph is [broken](crate::Error::Broken).
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set<'a, K: SafeKernel>(
        &self,
        kernel: &'a K,
        config: LaunchConfig,
        arguments: impl ArgumentsOf<'a, K::Signature>,
    ) -> Result<()> {
        // SAFETY: the kernel's declaration promises this for arguments that meet its conditions,
        // which are checked.
        unsafe { self.set_unchecked(kernel, config, arguments) }
    }

    /// [`set`](Self::set) for a kernel that was declared as `unsafe fn`. The conditions of its
    /// declaration are checked all the same.
    ///
    /// # Safety
    /// As [`Frontier::launch_unchecked`].
    ///
    /// # Errors
    /// As [`set`](Self::set).
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub unsafe fn set_unchecked<'a, K: TypedKernel>(
        &self,
        kernel: &'a K,
        config: LaunchConfig,
        arguments: impl ArgumentsOf<'a, K::Signature>,
    ) -> Result<()> {
        let prepared = kernel.prepare(&config, arguments)?;
        // SAFETY: the caller's promise.
        unsafe { self.set_untyped(kernel.kernel(), config, prepared) }
    }

    /// Launches a kernel, the same or another one, from now on; see [`set`](Self::set).
    ///
    /// # Safety
    /// As [`Frontier::launch_untyped`].
    ///
    /// # Errors
    /// As [`Frontier::launch_untyped`], and as [`set`](Self::set).
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub unsafe fn set_untyped(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<()> {
        self.getting(check(self.graph(), kernel, &config, &arguments))?;
        let PreparedLaunch { node_params, owners, attributes } =
            prepare(kernel, config, &arguments, arguments.accesses())?;
        arguments.with_pointers(|pointers| {
            let mut params = kernel_params(kernel, config, pointers);
            Relaunch { node_params, owners, attributes, handles: arguments.handles() }
                .apply(self, &mut params)
        })
    }
}

impl Frontier<'_> {
    /// Adds a launch of a typed kernel. Values are packed now; kernel and buffers are kept by the
    /// node.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// ```no_run
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>) where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
    /// # }
    /// # fn main() {}
    /// # fn example(
    /// #     graph: &cuda_graph::Graph, saxpy: &saxpy, x: &cuda_handles::Buffer<f32>, y: &cuda_handles::Buffer<f32>
    /// # ) -> cuda_graph::Result<()> {
    /// let step = graph.root().launch(saxpy, per(1000, 256), (1000, 2.0, x, y))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A condition of the kernel does not hold, memory that it writes overlaps other arguments;
    /// otherwise as [`launch_untyped`](Self::launch_untyped).
    #[doc(alias = "cuGraphAddKernelNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn launch<'a, K: SafeKernel>(
        &self,
        kernel: &'a K,
        config: LaunchConfig,
        arguments: impl ArgumentsOf<'a, K::Signature>,
    ) -> Result<KernelNode> {
        // SAFETY: the kernel's declaration promises this for arguments that meet its conditions,
        // which are checked. Memory of the device is no Rust reference, so that unordered work of
        // others changes numbers and nothing else.
        unsafe { self.launch_unchecked(kernel, config, arguments) }
    }

    /// [`launch`](Self::launch) for a kernel that was declared as `unsafe fn`. The conditions of
    /// its declaration are checked all the same; what is not checked is what its documentation
    /// asks.
    ///
    /// ```no_run
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     unsafe fn gather(n: u32, index: In<u32>, values: In<f32>, out: Out<f32>) where index.len() >= n, out.len() >= n;
    /// # }
    /// # fn main() {}
    /// # fn example(
    /// #     graph: &cuda_graph::Graph, gather: &gather, index: &cuda_handles::Buffer<u32>, values: &cuda_handles::Buffer<f32>,
    /// #     out: &cuda_handles::Buffer<f32>
    /// # ) -> cuda_graph::Result<()> {
    /// // SAFETY: every position in `index` is less than the length of `values`.
    /// let node = unsafe { graph.root().launch_unchecked(gather, per(1000, 256), (1000, index, values, out)) }?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`launch`](Self::launch) does not take such a kernel:
    /// ```compile_fail,E0277
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     unsafe fn gather(n: u32, index: In<u32>) where index.len() >= n;
    /// # }
    /// # fn main() {}
    /// # fn example(graph: &cuda_graph::Graph, gather: &gather, index: &cuda_handles::Buffer<u32>) {
    /// let _ = graph.root().launch(gather, per(1000, 256), (1000, index));
    /// # }
    /// ```
    /// And nothing launches it outside of `unsafe`:
    /// ```compile_fail,E0133
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     unsafe fn gather(n: u32, index: In<u32>) where index.len() >= n;
    /// # }
    /// # fn main() {}
    /// # fn example(graph: &cuda_graph::Graph, gather: &gather, index: &cuda_handles::Buffer<u32>) {
    /// let _ = graph.root().launch_unchecked(gather, per(1000, 256), (1000, index));
    /// # }
    /// ```
    ///
    /// # Safety
    /// At every launch of an executable of the graph, what the documentation of the kernel's
    /// declaration asks holds, for these arguments and this configuration and what the memory has
    /// in it then.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    #[doc(alias = "cuGraphAddKernelNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[inline]
    pub unsafe fn launch_unchecked<'a, K: TypedKernel>(
        &self,
        kernel: &'a K,
        config: LaunchConfig,
        arguments: impl ArgumentsOf<'a, K::Signature>,
    ) -> Result<KernelNode> {
        let prepared = kernel.prepare(&config, arguments)?;
        // SAFETY: the declaration says what the parameters are; that the kernel stays within their
        // memory is the caller's promise.
        unsafe { self.launch_untyped(kernel.kernel(), config, prepared) }
    }

    /// Adds a launch of `kernel`. The values are packed now; kernel and buffers are kept by the
    /// node.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2, and, for each attribute of the configuration,
    /// `cuGraphKernelNodeSetAttribute`, CUDA 11.0.
    ///
    /// # Safety
    /// At every launch of an executable of the graph:
    /// - The kernel's parameters mean what the arguments are: a number where it takes a number of
    ///   that kind, an address where it takes an address. (Number and sizes are checked.)
    /// - With these arguments and this configuration, and whatever the buffers hold then, the
    ///   kernel accesses no memory but that of the buffers given, within their bounds.
    /// - No other work that may run at the same time, in this graph or elsewhere, accesses the same
    ///   memory in a way that makes a data race.
    ///
    /// # Errors
    /// Configuration or arguments that the kernel does not take; a kernel of another context; a
    /// node of the frontier was removed; or what the driver answers.
    #[doc(alias = "cuGraphAddKernelNode")]
    #[doc(alias = "cuGraphAddNode")]
    // As for a launch on a stream: configuration and arguments are large, and passing them on takes
    // longer than what is done with them.
    #[inline(always)]
    pub unsafe fn launch_untyped(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<KernelNode> {
        check(self.graph(), kernel, &config, &arguments)?;
        let accesses = arguments.accesses();
        if config.has_attributes() || arguments.has_handles() || self.is_before_some() || accesses.are_apart()
        {
            return self.launch_in_steps(kernel, config, &arguments, accesses, None);
        }
        let mut used = SmallVec::<[&Arc<Allocation>; 16]>::new();
        arguments.each_allocation(|allocation| used.push(allocation));
        arguments.with_pointers(|pointers| {
            let mut params = kernel_params(kernel, config, pointers);
            let mut guard = self.graph().enter_here()?;
            guard.ensure_own_arguments(&used, kernel)?;
            guard.store_mut().reserve(used.len());
            let subgraph = self.graph().subgraph();
            let new = PlainLaunch { subgraph, kernel, config: &config, accesses, used: &used };
            let id = self.insert(&mut guard, new, &mut params)?;
            drop(guard);
            Ok(KernelNode::wrap(Node::new(self.graph().clone(), id, NodeKind::Kernel)))
        })
    }

    /// [`launch_untyped`](Self::launch_untyped) with something more that goes with the launch.
    ///
    /// # Safety
    /// As [`launch_untyped`](Self::launch_untyped).
    pub(crate) unsafe fn launch_keeping(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        arguments: impl Arguments,
        accesses: Accesses,
        more: Owner,
    ) -> Result<KernelNode> {
        check(self.graph(), kernel, &config, &arguments)?;
        self.launch_in_steps(kernel, config, &arguments, accesses, Some(more))
    }

    /// Adds a launch that takes more than one driver call, or keeps more than its arguments;
    /// everything is checked but attributes.
    #[cold]
    fn launch_in_steps(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        arguments: &impl Arguments,
        accesses: Accesses,
        more: Option<Owner>,
    ) -> Result<KernelNode> {
        let mut launch = prepare(kernel, config, arguments, accesses)?;
        launch.owners.extend(more);
        let (handles, subgraph) = (arguments.handles(), self.graph().subgraph());
        arguments.with_pointers(|pointers| {
            let mut params = kernel_params(kernel, config, pointers);
            let mut guard = self.graph().enter()?;
            // Once there are memory nodes, some stay.
            if !launch.attributes.is_empty() && guard.has_memory_nodes() {
                drop(guard);
                self.rehearse(&launch.attributes, &mut params)?;
                guard = self.graph().enter()?;
            }
            guard.ensure_may_hold(subgraph, &launch.node_params)?;
            guard.ensure_own_handles(&handles, &launch.node_params)?;
            guard.ensure_own_memory(&launch.owners, &launch.node_params)?;
            guard.ensure_not_freed(&launch.owners, &launch.node_params)?;
            // Where the library sets the default of a condition, the node waits for that.
            let defaults = guard.default_nodes(&handles, subgraph);
            let frontier = defaults.into_iter().fold(self.clone(), Self::and_id);
            guard.store_mut().reserve(launch.owners.len());
            let id = frontier.insert(&mut guard, NewLaunch { subgraph, launch, handles }, &mut params)?;
            drop(guard);
            Ok(KernelNode::wrap(Node::new(self.graph().clone(), id, NodeKind::Kernel)))
        })
    }
}

impl Frontier<'_> {
    /// Adds the node to a graph of its own first, so that its attributes are refused there: the driver
    /// would not remove it from a graph with memory nodes. Takes no lock.
    fn rehearse(&self, attributes: &AttributeList, params: &mut CUgraphNodeParams) -> Result<()> {
        let context = self.graph().context();
        let scratch = GraphHandle::create(context)?;
        let mut raw = core::ptr::null_mut();
        // SAFETY: the graph is new, and nobody else has it; the parameters are complete for their
        // type, and what they point to outlives the call.
        let result = unsafe {
            context.driver().cuGraphAddNode(&raw mut raw, scratch.as_raw(), core::ptr::null(), 0, params)
        };
        context.check(Call::cuGraphAddNode, result)?;
        set_all(context, raw, attributes.iter())
    }
}

/// A launch without attributes and handles of conditions. Its memory is counted only once the
/// driver has taken the node.
struct PlainLaunch<'a> {
    subgraph: SubgraphId,
    kernel: &'a Kernel,
    config: &'a LaunchConfig,
    accesses: Accesses,
    used: &'a [&'a Arc<Allocation>],
}

impl NewNode for PlainLaunch<'_> {
    type Found = ();

    #[inline]
    fn kind(&self) -> NodeKind {
        NodeKind::Kernel
    }

    #[inline]
    fn finish(&mut self, _: &mut GraphGuard<'_>, _: CUgraphNode, _: &CUgraphNodeParams) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, (): ()) -> NodeId {
        let mut uses = Uses::with_capacity(self.used.len());
        for allocation in self.used {
            uses.push(guard.store_mut().keep_allocation(allocation));
        }
        let (kernel, config) = (self.kernel.clone(), (*self.config).into());
        let node_params = NodeParams::Kernel { kernel, config, accesses: self.accesses };
        guard.insert_using(self.subgraph, added, node_params, uses)
    }

    fn into_owners(self) -> Owners {
        let memory = self.used.iter().map(|&allocation| Owner::Allocation(Arc::clone(allocation)));
        memory.chain([Owner::Kernel(self.kernel.clone())]).collect()
    }
}

/// A launch with attributes or handles of conditions.
struct NewLaunch {
    subgraph: SubgraphId,
    launch: PreparedLaunch,
    handles: KernelHandles,
}

impl NewNode for NewLaunch {
    type Found = ();

    fn kind(&self) -> NodeKind {
        NodeKind::Kernel
    }

    fn finish(&mut self, guard: &mut GraphGuard<'_>, raw: CUgraphNode, _: &CUgraphNodeParams) -> Result<()> {
        set_all(guard.context(), raw, self.launch.attributes.iter())
    }

    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, (): ()) -> NodeId {
        let PreparedLaunch { node_params, owners, .. } = self.launch;
        let id = guard.insert(self.subgraph, added, node_params, owners);
        guard.note_handles(id.index, &self.handles);
        id
    }

    fn into_owners(self) -> Owners {
        let mut owners = self.launch.owners;
        owners.extend(self.launch.node_params.owner());
        owners
    }
}

#[inline]
fn check(graph: &Graph, kernel: &Kernel, config: &LaunchConfig, arguments: &impl Arguments) -> Result<()> {
    let (context, of) = (graph.context(), kernel.context());
    ensure(context, of, || {
        let what = format!("the kernel `{}`", kernel.name());
        WrongContext::new(what, of, "the graph", context).advise("load it for that context")
    })?;
    config.check(kernel)?;
    arguments.check(kernel)?;
    Ok(arguments.check_memory(kernel)?)
}

/// What a checked launch consists of.
fn prepare(
    kernel: &Kernel,
    config: LaunchConfig,
    arguments: &impl Arguments,
    accesses: Accesses,
) -> Result<PreparedLaunch> {
    let attributes = match config.has_attributes() {
        true => config.node_attributes(kernel)?,
        false => AttributeList::default(),
    };
    let mut owners = Owners::new();
    arguments.each_owner(|owner: Owner| owners.push(owner));
    if accesses.are_apart() {
        owners.push(Owner::other(arguments.access_ranges()));
    }
    let node_params = NodeParams::Kernel { kernel: kernel.clone(), config: config.into(), accesses };
    Ok(PreparedLaunch { node_params, owners, attributes })
}
