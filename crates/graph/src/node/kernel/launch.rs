//! Launches of kernel nodes: adds nodes, and replaces the launch of existing ones.

use std::sync::Arc;

use cuda_handles::{Allocation, GraphHandle, Kernel, Owner, WrongContext};
use cuda_launch::internal::{Accesses, AttributeList, Observed};
use cuda_launch::{Arguments, ArgumentsOf, LaunchConfig, Prepared, SafeKernel, TypedKernel};
use smallvec::SmallVec;

use super::attribute::set_all;
use super::relaunch::Relaunch;
use crate::build::frontier::Frontier;
use crate::build::insertion::NewNode;
use crate::check::collect::memory_among;
use crate::error::Result;
use crate::error::wrong_context::ensure;
use crate::footprint::Footprint;
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::node::kernel::KernelNode;
use crate::node_kind::NodeKind;
use crate::param::bind::{NewBinding, ensure_no_params, of_launch};
use crate::param::config::NodeConfig;
use crate::state::AddedNode;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::owners::Uses;
use crate::state::params::KernelHandles;
use crate::state::params::NodeParams;
use crate::state::raw_params::kernel_params;
use cuda_sys::{CUgraphNode, CUgraphNodeParams, Call};

/// A checked launch with its owners. The kernel is in the parameters.
pub(crate) struct PreparedLaunch {
    pub(crate) node_params: NodeParams,
    pub(crate) owners: Owners,
    attributes: AttributeList,
}

impl KernelNode {
    /// Replaces the node's launch with one of a typed kernel; see [`Frontier::launch`].
    ///
    /// The kernel may be another one. The node drops what only the old launch used. Existing
    /// executables keep the old launch and its owners.
    ///
    /// The node gets the attributes of `config`. Attributes that `config` does not set get the
    /// driver's default. Attributes that a [`LaunchConfig`] does not have, as set by
    /// [`set_attribute`](Self::set_attribute), are left to the driver.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2). If the old or the new launch has attributes, also
    /// calls `cuGraphKernelNodeSetAttribute` (CUDA 11.0) and `cuGraphKernelNodeGetParams` (CUDA
    /// 12.0).
    ///
    /// # Errors
    /// The errors of [`Frontier::launch`], and [`ParamError::Bound`](crate::ParamError::Bound), if
    /// the node takes graph parameters. The node is then unchanged, unless the driver refuses an
    /// attribute and then also refuses to restore the old launch
    /// ([`Error::Broken`](crate::Error::Broken)).
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphKernelNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
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

    /// Replaces the node's launch with one of a kernel that was declared as `unsafe fn`; see
    /// [`set`](Self::set). The conditions of the declaration are checked.
    ///
    /// # Safety
    /// As for [`Frontier::launch_unchecked`].
    ///
    /// # Errors
    /// The errors of [`set`](Self::set).
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphKernelNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub unsafe fn set_unchecked<'a, K: TypedKernel>(
        &self,
        kernel: &'a K,
        config: LaunchConfig,
        arguments: impl ArgumentsOf<'a, K::Signature>,
    ) -> Result<()> {
        ensure_no_params::<K::Signature>(&arguments, "KernelNode::set")?;
        let prepared = Prepared::with_parameters(kernel, &config, arguments)?;
        // SAFETY: the caller promises this.
        unsafe { self.set_untyped(kernel.kernel(), config, prepared) }
    }

    /// Replaces the node's launch with one of a kernel without a declaration; see
    /// [`set`](Self::set).
    ///
    /// # Safety
    /// As for [`Frontier::launch_untyped`].
    ///
    /// # Errors
    /// The errors of [`Frontier::launch_untyped`] and of [`set`](Self::set).
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphKernelNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub unsafe fn set_untyped(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<()> {
        self.getting(check(self.graph(), kernel, &config, &arguments))?;
        let _observed = Observed::node(kernel, &arguments);
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
    /// Adds a node that launches a typed kernel.
    ///
    /// The arguments are packed now. The node keeps the kernel and the memory of the arguments
    /// alive.
    ///
    /// ```no_run
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
    /// #     where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
    /// # }
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::Buffer;
    /// # fn main() {}
    /// # fn example(
    /// #     graph: &Graph, saxpy: &saxpy, x: &Buffer<f32>, y: &Buffer<f32>
    /// # ) -> Result<()> {
    /// let step = graph.root().launch(saxpy, per(1000, 256), (1000, 2.0, x, y))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2) and, for each attribute of `config`,
    /// `cuGraphKernelNodeSetAttribute` (CUDA 11.0).
    ///
    /// # Errors
    /// The errors of [`launch_untyped`](Self::launch_untyped), and
    /// [`Error::Launch`](crate::Error::Launch), if a condition of the declaration does not hold, or
    /// memory that the kernel writes overlaps another argument.
    #[doc(alias = "cuGraphAddKernelNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddKernelNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaLaunchKernel")]
    #[doc(alias = "cudaLaunchKernelExC")]
    #[doc(alias = "cuLaunchKernel")]
    pub fn launch<'a, K: SafeKernel>(
        &self,
        kernel: &'a K,
        config: impl NodeConfig,
        arguments: impl ArgumentsOf<'a, K::Signature>,
    ) -> Result<KernelNode> {
        // SAFETY: the kernel's declaration promises this for arguments that meet its conditions,
        // which are checked. No Rust reference points to device memory: work that is not ordered
        // with the kernel changes numbers, and nothing else.
        unsafe { self.launch_unchecked(kernel, config, arguments) }
    }

    /// Adds a node that launches a kernel declared as `unsafe fn`; see [`launch`](Self::launch).
    ///
    /// The conditions of the declaration are checked. The further conditions in its documentation
    /// are the caller's to meet.
    ///
    /// ```no_run
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     unsafe fn gather(n: u32, index: In<u32>, values: In<f32>, out: Out<f32>)
    /// #     where index.len() >= n, out.len() >= n;
    /// # }
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::Buffer;
    /// # fn main() {}
    /// # fn example(
    /// #     graph: &Graph, gather: &gather, index: &Buffer<u32>, values: &Buffer<f32>,
    /// #     out: &Buffer<f32>
    /// # ) -> Result<()> {
    /// let (config, arguments) = (per(1000, 256), (1000, index, values, out));
    /// // SAFETY: every position in `index` is less than the length of `values`.
    /// let node = unsafe { graph.root().launch_unchecked(gather, config, arguments) }?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`launch`](Self::launch) does not accept such a kernel:
    /// ```compile_fail,E0277
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     unsafe fn gather(n: u32, index: In<u32>) where index.len() >= n;
    /// # }
    /// # use cuda_graph::Graph;
    /// # fn main() {}
    /// # fn example(graph: &Graph, gather: &gather, index: &cuda_handles::Buffer<u32>) {
    /// let _ = graph.root().launch(gather, per(1000, 256), (1000, index));
    /// # }
    /// ```
    /// Without `unsafe`, it cannot be launched at all:
    /// ```compile_fail,E0133
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     unsafe fn gather(n: u32, index: In<u32>) where index.len() >= n;
    /// # }
    /// # use cuda_graph::Graph;
    /// # fn main() {}
    /// # fn example(graph: &Graph, gather: &gather, index: &cuda_handles::Buffer<u32>) {
    /// let _ = graph.root().launch_unchecked(gather, per(1000, 256), (1000, index));
    /// # }
    /// ```
    ///
    /// # Safety
    /// At every launch of an executable of the graph, the conditions in the documentation of the
    /// kernel's declaration hold, for these arguments, this configuration and the contents of the
    /// memory at that time; and for every value that its graph parameters can be set to, which is
    /// checked against the declaration alone.
    ///
    /// # Errors
    /// The errors of [`launch`](Self::launch).
    #[doc(alias = "cuGraphAddKernelNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddKernelNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaLaunchKernel")]
    #[doc(alias = "cudaLaunchKernelExC")]
    #[doc(alias = "cuLaunchKernel")]
    #[inline]
    pub unsafe fn launch_unchecked<'a, K: TypedKernel>(
        &self,
        kernel: &'a K,
        config: impl NodeConfig,
        arguments: impl ArgumentsOf<'a, K::Signature>,
    ) -> Result<KernelNode> {
        let (placeholders, source) = (arguments.placeholders(), config.source());
        let config = config.config();
        let prepared = Prepared::with_parameters(kernel, &config, arguments)?;
        if !placeholders.is_empty() || source.is_some() {
            let binding = of_launch(kernel.kernel(), config, source, &placeholders, &prepared)?;
            return self.launch_bound(kernel.kernel(), config, &prepared, binding);
        }
        // SAFETY: the declaration has the types of the parameters. The caller promises that the
        // kernel stays within their memory.
        unsafe { self.launch_untyped(kernel.kernel(), config, prepared) }
    }

    /// Adds a launch with graph parameters.
    #[cold]
    fn launch_bound(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        arguments: &impl Arguments,
        binding: Option<NewBinding>,
    ) -> Result<KernelNode> {
        check(self.graph(), kernel, &config, arguments)?;
        let _observed = Observed::node(kernel, arguments);
        let accesses = arguments.accesses();
        self.launch_in_steps(kernel, config, arguments, accesses, More { owner: None, binding })
    }

    /// Adds a node that launches a kernel without a declaration.
    ///
    /// The arguments are packed now. The node keeps the kernel and the memory of the arguments
    /// alive. Number and sizes of the arguments are checked, their types are not.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::{Buffer, Kernel};
    /// # fn example(graph: &Graph, scale: &Kernel, values: &Buffer<f32>) -> Result<()> {
    /// use cuda_launch::{params, per};
    ///
    /// let arguments = params![1000_u32, 2.0_f32, values];
    /// // SAFETY: the kernel is `scale(unsigned n, float by, float *values)`. It stays within the
    /// // first n elements, which no other work uses.
    /// let node = unsafe { graph.root().launch_untyped(scale, per(1000, 256), arguments) }?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2) and, for each attribute of `config`,
    /// `cuGraphKernelNodeSetAttribute` (CUDA 11.0).
    ///
    /// # Safety
    /// At every launch of an executable of the graph:
    /// - Each argument has the type of its parameter: a number where the kernel takes such a
    ///   number, an address where it takes an address.
    /// - With these arguments and this configuration, and for any contents of the memory, the
    ///   kernel accesses only the memory of its arguments, within their bounds.
    /// - No other work that may run at the same time, in this graph or elsewhere, races with the
    ///   kernel for that memory.
    ///
    /// # Errors
    /// - [`Error::Launch`](crate::Error::Launch), if the kernel does not take the configuration or
    ///   the arguments.
    /// - [`Error::Handles`](crate::Error::Handles), if the kernel belongs to another context, or
    ///   the driver reports an error.
    /// - [`MemoryError::ForeignMemory`](crate::MemoryError::ForeignMemory), if memory belongs to an
    ///   allocation node of another graph, and
    ///   [`ConditionError::ForeignCondition`](crate::ConditionError::ForeignCondition), if a
    ///   condition belongs to another graph.
    /// - [`NodeError::Removed`](crate::NodeError::Removed), if a node of the frontier was removed.
    #[doc(alias = "cuGraphAddKernelNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddKernelNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaLaunchKernel")]
    #[doc(alias = "cudaLaunchKernelExC")]
    #[doc(alias = "cuLaunchKernel")]
    // Inlined since configuration and arguments are large: copying them takes longer than using
    // them, as for a launch on a stream.
    #[inline(always)]
    pub unsafe fn launch_untyped(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<KernelNode> {
        check(self.graph(), kernel, &config, &arguments)?;
        let _observed = Observed::node(kernel, &arguments);
        let accesses = arguments.accesses();
        if config.has_attributes() || arguments.has_handles() || self.is_before_some() || accesses.are_apart()
        {
            return self.launch_in_steps(kernel, config, &arguments, accesses, More::default());
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

    /// [`launch_untyped`](Self::launch_untyped) with an additional owner for the node to keep.
    ///
    /// # Safety
    /// As for [`launch_untyped`](Self::launch_untyped).
    pub(crate) unsafe fn launch_keeping(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        arguments: impl Arguments,
        accesses: Accesses,
        more: Owner,
        binding: Option<NewBinding>,
    ) -> Result<KernelNode> {
        check(self.graph(), kernel, &config, &arguments)?;
        self.launch_in_steps(kernel, config, &arguments, accesses, More { owner: Some(more), binding })
    }

    /// Adds a launch that takes more than one driver call, or keeps more than its arguments. The
    /// caller has checked everything but the attributes.
    #[cold]
    fn launch_in_steps(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        arguments: &impl Arguments,
        accesses: Accesses,
        More { owner, binding }: More,
    ) -> Result<KernelNode> {
        let mut launch = prepare(kernel, config, arguments, accesses)?;
        launch.owners.extend(owner);
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
            binding.iter().try_for_each(|binding| guard.ensure_own_params(binding))?;
            guard.ensure_own_handles(&handles, &launch.node_params)?;
            guard.ensure_own_memory(&launch.owners, &launch.node_params)?;
            guard.ensure_not_freed(&launch.owners, &launch.node_params)?;
            // The node waits for the nodes that assign the defaults of its conditions.
            let defaults = guard.default_nodes(&handles, subgraph);
            let frontier = defaults.into_iter().fold(self.clone(), Self::and_id);
            guard.store_mut().reserve(launch.owners.len());
            let id =
                frontier.insert(&mut guard, NewLaunch { subgraph, launch, handles, binding }, &mut params)?;
            drop(guard);
            Ok(KernelNode::wrap(Node::new(self.graph().clone(), id, NodeKind::Kernel)))
        })
    }
}

impl Frontier<'_> {
    /// Adds the node to a scratch graph first: the driver may refuse an attribute after it added
    /// the node, and does not remove nodes from a graph with memory nodes. Takes no lock.
    fn rehearse(&self, attributes: &AttributeList, params: &mut CUgraphNodeParams) -> Result<()> {
        let context = self.graph().context();
        let scratch = GraphHandle::create(context)?;
        let mut raw = core::ptr::null_mut();
        // SAFETY: the graph is new, and no other code has it. The parameters are complete for their
        // type, and their pointers outlive the call.
        let result = unsafe {
            context.driver().cuGraphAddNode(&raw mut raw, scratch.as_raw(), core::ptr::null(), 0, params)
        };
        context.check(Call::cuGraphAddNode, result)?;
        set_all(context, raw, attributes.iter())
    }
}

/// A launch without attributes and handles of conditions. References to its memory are counted only
/// after the driver has added the node.
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

    fn footprint(&self, guard: &GraphGuard<'_>, params: &CUgraphNodeParams) -> Result<Footprint> {
        let (kernel, config) = (self.kernel.clone(), (*self.config).into());
        let node_params = NodeParams::Kernel { kernel, config, accesses: self.accesses };
        Footprint::of_new(guard.context(), &node_params, params, (self.used.to_vec(), None), &[])
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

/// Anything that few launches have.
#[derive(Default)]
struct More {
    /// An owner beside the arguments.
    owner: Option<Owner>,
    /// The use of graph parameters.
    binding: Option<NewBinding>,
}

/// A launch with attributes, handles of conditions, or graph parameters.
struct NewLaunch {
    subgraph: SubgraphId,
    launch: PreparedLaunch,
    handles: KernelHandles,
    binding: Option<NewBinding>,
}

impl NewNode for NewLaunch {
    type Found = ();

    fn kind(&self) -> NodeKind {
        NodeKind::Kernel
    }

    fn footprint(&self, guard: &GraphGuard<'_>, params: &CUgraphNodeParams) -> Result<Footprint> {
        if self.binding.is_some() {
            return Ok(Footprint::OPAQUE);
        }
        let PreparedLaunch { node_params, owners, .. } = &self.launch;
        let conditions: SmallVec<[u64; 1]> = self.handles.iter().map(|handle| handle.number()).collect();
        Footprint::of_new(guard.context(), node_params, params, memory_among(owners.iter()), &conditions)
    }

    fn finish(&mut self, guard: &mut GraphGuard<'_>, raw: CUgraphNode, _: &CUgraphNodeParams) -> Result<()> {
        set_all(guard.context(), raw, self.launch.attributes.iter())
    }

    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, (): ()) -> NodeId {
        let PreparedLaunch { node_params, owners, .. } = self.launch;
        let id = guard.insert(self.subgraph, added, node_params, owners);
        guard.note_handles(id.index, &self.handles);
        if let Some(binding) = self.binding {
            guard.bindings.bind(id, binding.into_binding());
        }
        id
    }

    fn into_owners(self) -> Owners {
        let mut owners = self.launch.owners;
        owners.extend(self.launch.node_params.owner());
        owners
    }
}

/// What lets a graph have a kernel of another context.
const ADVICE: &str = "load it for that context, or make the graph for both (`Graph::spanning`)";

/// Refuses a kernel of a context that the graph does not span.
#[inline]
pub(crate) fn ensure_of(graph: &Graph, kernel: &Kernel) -> Result<()> {
    let (context, of) = (graph.context(), kernel.context());
    ensure(graph, of, || {
        let what = format!("the kernel `{}`", kernel.name());
        WrongContext::new(what, of, "the graph", context).advise(ADVICE)
    })
}

#[inline]
pub(crate) fn check(
    graph: &Graph,
    kernel: &Kernel,
    config: &LaunchConfig,
    arguments: &impl Arguments,
) -> Result<()> {
    ensure_of(graph, kernel)?;
    config.check(kernel)?;
    arguments.check(kernel)?;
    Ok(arguments.check_memory(kernel)?)
}

/// Collects the owners and the attributes of a checked launch.
pub(crate) fn prepare(
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
