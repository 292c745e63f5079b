//! Nodes that copy memory.

use std::sync::Arc;

use cuda_handles::{
    Allocation, Context, Copy2d, Copy3d, CopyLayout, Device, Element, Error as HandleError, MemoryKind,
    MemorySpace, NodeMemory, Owner, SharedHostBuffer, Slice,
};
use cuda_sys::{CUdeviceptr, CUgraphNodeParams, CUgraphNodeType, CUresult};

use super::raw::RawCopy;
use crate::build::frontier::Frontier;
use crate::error::wrong_context::ensure_memory;
use crate::error::{Error, Result};
use crate::graph::node::typed;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;

typed! {
    /// A node that copies memory: a row of bytes, a rectangle or a box, between any two of device
    /// memory, pinned and managed memory.
    MemcpyNode, Memcpy
}

/// A copy, checked, with what it keeps alive.
type Prepared = (CopyLayout, Owners);

impl MemcpyNode {
    /// What is copied from where to where, and where the memory lies.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphMemcpyNodeGetParams")]
    pub fn layout(&self) -> Result<CopyLayout> {
        match self.node_params()? {
            NodeParams::Memcpy(layout) => Ok(layout),
            // The handle is made for rows of its kind only, and a row keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// The address copied from.
    ///
    /// # Errors
    /// The node was removed.
    pub fn source(&self) -> Result<CUdeviceptr> {
        self.layout().map(|layout| layout.source.address)
    }

    /// The address copied to.
    ///
    /// # Errors
    /// The node was removed.
    pub fn destination(&self) -> Result<CUdeviceptr> {
        self.layout().map(|layout| layout.destination.address)
    }

    /// The number of bytes copied.
    ///
    /// # Errors
    /// The node was removed.
    pub fn bytes(&self) -> Result<usize> {
        self.layout().map(|layout| layout.bytes())
    }

    /// Copies `source` to `destination` from now on, in place of what it was made for; also where
    /// that was of another kind or dimension. Executables made before go on as they are.
    ///
    /// Stands on `cuGraphNodeSetParams`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`Frontier::copy`]; the node is as it was then.
    #[doc(alias = "cuGraphMemcpyNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set<'a, 'b, T: Element>(
        &self,
        source: impl NodeMemory<'a, T>,
        destination: impl NodeMemory<'b, T>,
    ) -> Result<()> {
        self.replace_by(self.getting(linear(
            self.graph().context(),
            source.operand(),
            destination.operand(),
        ))?)
    }

    /// Copies a rectangle from now on; see [`set`](Self::set).
    ///
    /// # Errors
    /// As [`Frontier::copy_2d`].
    pub fn set_2d<T: Element>(&self, copy: Copy2d<'_, T>) -> Result<()> {
        self.set_3d(copy.layer())
    }

    /// Copies a box from now on; see [`set`](Self::set).
    ///
    /// # Errors
    /// As [`Frontier::copy_3d`].
    pub fn set_3d<T: Element>(&self, copy: Copy3d<'_, T>) -> Result<()> {
        self.replace_by(self.getting(boxed(self.graph().context(), copy))?)
    }

    /// Copies between devices from now on; see [`set`](Self::set).
    ///
    /// # Errors
    /// As [`Frontier::copy_peer`].
    pub fn set_peer<'a, 'b, T: Element>(
        &self,
        source: impl NodeMemory<'a, T>,
        destination: impl NodeMemory<'b, T>,
    ) -> Result<()> {
        let context = self.graph().context();
        self.getting(between(context, source.operand(), destination.operand(), |copy| self.replace_by(copy)))
    }

    /// Copies between addresses from now on; see [`set`](Self::set).
    ///
    /// # Safety
    /// As [`Frontier::copy_raw`].
    ///
    /// # Errors
    /// As [`Frontier::copy_raw`].
    pub unsafe fn set_raw(&self, copy: RawCopy) -> Result<()> {
        self.replace_by(copy.prepare(self.graph().context())?)
    }

    fn replace_by(&self, (layout, owners): Prepared) -> Result<()> {
        let mut params = params(self.graph().context(), &layout);
        self.replace(NodeParams::Memcpy(layout), owners, &mut params)
    }
}

impl Frontier<'_> {
    /// Adds a node that copies `source` to `destination`, which has as many elements and does not
    /// overlap it: device memory, pinned or managed memory, of whichever
    /// [kinds](cuda_handles::MemoryKind).
    ///
    /// Memory of the graph is copied by nodes that are added before its [free node](Self::free),
    /// also those that run before that.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// Different lengths, overlapping slices, no elements, memory of another context (see
    /// [`copy_peer`](Self::copy_peer)); memory of the graph for which there is a free node
    /// ([`Error::FreedBefore`]); a node of the frontier was removed; or what the driver answers.
    #[doc(alias = "cuGraphAddMemcpyNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn copy<'a, 'b, T: Element>(
        &self,
        source: impl NodeMemory<'a, T>,
        destination: impl NodeMemory<'b, T>,
    ) -> Result<MemcpyNode> {
        self.add_copy(linear(self.graph().context(), source.operand(), destination.operand())?)
    }

    /// Adds a node that copies device memory to pinned or managed memory of the same length. The
    /// host can look at it once graph and executables are gone and their streams were waited for:
    /// [`SharedHostBuffer::try_unique`]; until then it reads by copies in a stream's order.
    ///
    /// Memory that the host holds as a slice is not taken, so that no reference of the host's
    /// points to what a graph writes:
    ///
    /// ```compile_fail,E0308
    /// # fn example(
    /// #     context: &cuda_handles::Context, graph: &cuda_graph::Graph, buffer: &cuda_handles::Buffer<u32>
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let host = context.pinned_zeros::<u32>(8)?;
    /// graph.root().copy_to_host(buffer, &host)?; // not shared: host.share() is
    /// println!("{}", host[0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0277
    /// # fn example(graph: &cuda_graph::Graph, buffer: &cuda_handles::Buffer<u32>) -> cuda_graph::Result<()> {
    /// let host = vec![0_u32; 8];
    /// graph.root().copy(&host, buffer)?; // pageable: Frontier::copy_raw takes it by address
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn copy_to_host<'a, T: Element>(
        &self,
        source: impl NodeMemory<'a, T>,
        destination: &SharedHostBuffer<T>,
    ) -> Result<MemcpyNode> {
        self.copy(source, destination)
    }

    /// Adds a node that copies pinned or managed memory to device memory of the same length. What
    /// is copied is what the memory holds when the node runs, at every launch.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn copy_from_host<'a, T: Element>(
        &self,
        source: &SharedHostBuffer<T>,
        destination: impl NodeMemory<'a, T>,
    ) -> Result<MemcpyNode> {
        self.copy(source, destination)
    }

    /// Adds a node that copies a rectangle.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// No elements; a pitch below the width; the rectangle leaves a slice, or overlaps itself;
    /// memory of another context, or of the graph for which there is a free node
    /// ([`Error::FreedBefore`]); a node of the frontier was removed; or what the driver answers,
    /// which has a limit for pitches (`CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
    #[doc(alias = "cuGraphAddMemcpyNode")]
    pub fn copy_2d<T: Element>(&self, copy: Copy2d<'_, T>) -> Result<MemcpyNode> {
        self.copy_3d(copy.layer())
    }

    /// Adds a node that copies a box.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// No elements; a pitch below the width, or fewer rows than the height; the box leaves a slice,
    /// or overlaps itself; memory of another context, or of the graph for which there is a free
    /// node ([`Error::FreedBefore`]); a node of the frontier was removed; or what the driver
    /// answers, which has a limit for pitches (`CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
    #[doc(alias = "cuGraphAddMemcpyNode")]
    pub fn copy_3d<T: Element>(&self, copy: Copy3d<'_, T>) -> Result<MemcpyNode> {
        self.add_copy(boxed(self.graph().context(), copy)?)
    }

    /// Adds a node that copies memory of one context to memory of another, of the same length. One
    /// of the two is the graph's. What the other one's streams do with the memory before and after
    /// a launch has to be put in order with it, by [`Stream::wait_for`].
    ///
    /// Memory of a pool is copied by a node only if the graph's device may access that pool
    /// ([`MemPool::grant_access`]); a copy on a stream needs no access.
    ///
    /// [`MemPool::grant_access`]: cuda_handles::MemPool::grant_access
    /// [`Stream::wait_for`]: cuda_handles::Stream::wait_for
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// Different lengths, no elements, memory of two other contexts, or of the graph for which
    /// there is a free node ([`Error::FreedBefore`]); memory of a pool that the graph's device may
    /// not access ([`Error::PoolOutOfReach`]); a node of the frontier was removed; or what the
    /// driver answers.
    #[doc(alias = "cuMemcpyPeerAsync")]
    pub fn copy_peer<'a, 'b, T: Element>(
        &self,
        source: impl NodeMemory<'a, T>,
        destination: impl NodeMemory<'b, T>,
    ) -> Result<MemcpyNode> {
        let context = self.graph().context();
        between(context, source.operand(), destination.operand(), |copy| self.add_copy(copy))
    }

    /// Adds a node that copies between addresses. The driver is asked what memory they are of, one
    /// call for each, and [`MemcpyNode::layout`] tells. Pageable memory of the host is refused
    /// unless [`RawMemory::pageable`](crate::RawMemory::pageable) says that it is meant.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2, and `cuPointerGetAttributes`, CUDA 7.0.
    ///
    /// # Safety
    /// At every launch of an executable of the graph:
    /// - The memory is there, the source readable and the destination writable, over all the rows
    ///   that the description names. The owners given are kept as long as the node, and as long as
    ///   an executable made of it meanwhile can run.
    /// - The host has no references into memory of its own that is written, and none but shared
    ///   ones into what is read.
    /// - Pageable memory of the host is read during the call of the launch, and written before that
    ///   call returns; other memory, when the node runs.
    ///
    /// # Errors
    /// No bytes; an address that the driver knows no memory at; more bytes than are left there; a
    /// pitch below the width, or fewer rows than the height; an overlap; a node of the frontier was
    /// removed; or what the driver answers.
    #[doc(alias = "cuGraphAddMemcpyNode")]
    pub unsafe fn copy_raw(&self, copy: RawCopy) -> Result<MemcpyNode> {
        self.add_copy(copy.prepare(self.graph().context())?)
    }

    fn add_copy(&self, (layout, owners): Prepared) -> Result<MemcpyNode> {
        let mut params = params(self.graph().context(), &layout);
        self.add(NodeParams::Memcpy(layout), owners, &mut params).map(MemcpyNode::wrap)
    }
}

const SOURCE: &str = "the source of a copy";
const DESTINATION: &str = "the destination of a copy";
const NEITHER: &str = "the destination of a copy whose source is not of the graph's context either";

fn linear<T>(context: &Context, source: Slice<'_, T>, destination: Slice<'_, T>) -> Result<Prepared> {
    let layout = CopyLayout::linear(source, destination)?;
    prepared(context, source.allocation(), destination.allocation(), layout)
}

fn boxed<T>(context: &Context, copy: Copy3d<'_, T>) -> Result<Prepared> {
    let (source, destination) = (copy.source.allocation(), copy.destination.allocation());
    prepared(context, source, destination, copy.layout()?)
}

fn prepared(
    context: &Context,
    source: &Arc<Allocation>,
    destination: &Arc<Allocation>,
    layout: Option<CopyLayout>,
) -> Result<Prepared> {
    let layout = layout.ok_or(Error::NoElements { what: "memcpy" })?;
    const ADVICE: &str = "a node of `Frontier::copy_peer` copies from one context to another";
    ensure_memory(context, source.context(), SOURCE, ADVICE)?;
    ensure_memory(context, destination.context(), DESTINATION, ADVICE)?;
    Ok((layout, owners(source, destination)))
}

fn peer<T>(context: &Context, source: Slice<'_, T>, destination: Slice<'_, T>) -> Result<Prepared> {
    let (from, to) = (source.allocation(), destination.allocation());
    let mut layout = CopyLayout::linear(source, destination)?.ok_or(Error::NoElements { what: "memcpy" })?;
    let is_elsewhere = |memory: &Allocation| !context.is_same(memory.context());
    if is_elsewhere(from) {
        ensure_memory(context, to.context(), NEITHER, "one of the two has to be of the graph's context")?;
    }
    for (side, memory) in [(&mut layout.source, from), (&mut layout.destination, to)] {
        if is_elsewhere(memory) && side.space == MemorySpace::Device {
            side.space = MemorySpace::Peer;
        }
    }
    Ok((layout, owners(from, to)))
}

/// Gives a node a copy between devices, with words for what the driver refuses without a reason.
fn between<T, R>(
    context: &Context,
    source: Slice<'_, T>,
    destination: Slice<'_, T>,
    give: impl FnOnce(Prepared) -> Result<R>,
) -> Result<R> {
    let far = far_pool(context, [source.allocation(), destination.allocation()]);
    give(peer(context, source, destination)?).map_err(|error| in_words(error, context, far))
}

/// The device of the one of two memories that is another device's and of a pool.
fn far_pool(context: &Context, memories: [&Arc<Allocation>; 2]) -> Option<Device> {
    let is_far = |memory: &&&Arc<Allocation>| {
        memory.context().device() != context.device() && memory.kind() == MemoryKind::Pooled
    };
    memories.iter().find(is_far).map(|memory| memory.context().device())
}

/// What the driver gives no reason for.
fn in_words(error: Error, context: &Context, far: Option<Device>) -> Error {
    match (&error, far) {
        (Error::Handles(HandleError::Driver { code: CUresult::CUDA_ERROR_INVALID_VALUE, .. }), Some(far)) => {
            Error::PoolOutOfReach { own: context.device().ordinal(), of: far.ordinal() }
        }
        _ => error,
    }
}

fn owners(source: &Arc<Allocation>, destination: &Arc<Allocation>) -> Owners {
    let mut owners = Owners::new();
    owners.push(Owner::from(source));
    if !Arc::ptr_eq(source, destination) {
        owners.push(Owner::from(destination));
    }
    owners
}

/// The driver's form of a copy.
pub(crate) fn params(context: &Context, layout: &CopyLayout) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY);
    params.__bindgen_anon_1.memcpy.copyCtx = context.as_raw();
    // SAFETY: the union is zeroed as a whole, which is a value of this part of it.
    layout.write_to(unsafe { &mut params.__bindgen_anon_1.memcpy.copyParams });
    params
}
