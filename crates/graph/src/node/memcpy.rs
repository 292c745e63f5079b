//! Copy nodes: copy memory.

use std::sync::Arc;

use cuda_handles::{
    Allocation, Context, Copy2d, Copy3d, CopyLayout, CopySide, Element, Error as HandleError, MemorySpace,
    NodeMemory, Owner, Slice,
};
use cuda_sys::{CUdeviceptr, CUgraphNodeParams, CUgraphNodeType, CUresult};

use super::raw::RawCopy;
use crate::build::frontier::Frontier;
use crate::error::wrong_context::{Spans, ensure_memory};
use crate::error::{Error, MemoryError, NodeError, Result};
use crate::graph::node::typed;
use crate::param::bind::{NewBinding, fixed, of_copy};
use crate::param::graph_param::stored;
use crate::state::owners::{Owners, replace_memory};
use crate::state::params::NodeParams;
use crate::state::place::{Place, copy_context, far_pool};
use crate::state::raw_params::blank;

typed! {
    /// A node that copies memory: a row of bytes, a rectangle of rows, or a box of layers.
    ///
    /// Source and destination are device, pinned, registered or managed memory in any combination.
    /// The node keeps both alive.
    ///
    /// Add one with [`Frontier::copy`], [`copy_2d`](Frontier::copy_2d),
    /// [`copy_3d`](Frontier::copy_3d), [`copy_peer`](Frontier::copy_peer) or, by addresses,
    /// [`copy_raw`](Frontier::copy_raw).
    #[doc(alias = "CUDA_MEMCPY_NODE_PARAMS")]
    #[doc(alias = "cudaMemcpyNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeMemcpy")]
    MemcpyNode, Memcpy
}

/// A checked copy with its owners.
pub(crate) type Prepared = (CopyLayout, Owners);

impl MemcpyNode {
    /// The copy in bytes: addresses, extent and pitches, and the kind of memory on each side.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    #[doc(alias = "cuGraphMemcpyNodeGetParams")]
    #[doc(alias = "cudaGraphMemcpyNodeGetParams")]
    pub fn layout(&self) -> Result<CopyLayout> {
        match self.node_params()? {
            NodeParams::Memcpy(layout) => Ok(layout),
            // A handle is made only for a record of its kind, and a record keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// The source address.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    pub fn source(&self) -> Result<CUdeviceptr> {
        self.layout().map(|layout| layout.source.address)
    }

    /// The destination address.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    pub fn destination(&self) -> Result<CUdeviceptr> {
        self.layout().map(|layout| layout.destination.address)
    }

    /// The number of bytes that the node copies.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    pub fn bytes(&self) -> Result<usize> {
        self.layout().map(|layout| layout.bytes())
    }

    /// Replaces the node's copy with a copy of `source` to `destination`; see [`Frontier::copy`].
    ///
    /// The old copy may have had other dimensions or other kinds of memory. Existing executables
    /// keep it.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed;
    /// [`ParamError::Bound`](crate::ParamError::Bound), if it takes graph parameters; and the
    /// errors of [`Frontier::copy`]. The node is then unchanged.
    #[doc(alias = "cuGraphMemcpyNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemcpyNodeSetParams")]
    #[doc(alias = "cudaGraphMemcpyNodeSetParams1D")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set<'a, 'b, T: Element>(
        &self,
        source: impl NodeMemory<'a, T>,
        destination: impl NodeMemory<'b, T>,
    ) -> Result<()> {
        self.replace_by(self.getting(linear(
            self.graph(),
            fixed(source, "MemcpyNode::set")?,
            fixed(destination, "MemcpyNode::set")?,
        ))?)
    }

    /// Replaces the node's copy with a copy of a rectangle; see [`set`](Self::set).
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed, and the errors of [`Frontier::copy_2d`].
    /// The node is then unchanged.
    #[doc(alias = "cuGraphMemcpyNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemcpyNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set_2d<T: Element>(&self, copy: Copy2d<'_, T>) -> Result<()> {
        self.set_3d(copy.layer())
    }

    /// Replaces the node's copy with a copy of a box; see [`set`](Self::set).
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed, and the errors of [`Frontier::copy_3d`].
    /// The node is then unchanged.
    #[doc(alias = "cuGraphMemcpyNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemcpyNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set_3d<T: Element>(&self, copy: Copy3d<'_, T>) -> Result<()> {
        self.replace_by(self.getting(boxed(self.graph(), copy))?)
    }

    /// Replaces the node's copy with a copy between contexts; see [`set`](Self::set).
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed, and the errors of [`Frontier::copy_peer`].
    /// The node is then unchanged.
    #[doc(alias = "cuGraphMemcpyNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemcpyNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set_peer<'a, 'b, T: Element>(
        &self,
        source: impl NodeMemory<'a, T>,
        destination: impl NodeMemory<'b, T>,
    ) -> Result<()> {
        let (source, destination) =
            (fixed(source, "MemcpyNode::set_peer")?, fixed(destination, "MemcpyNode::set_peer")?);
        self.getting(between(self.graph(), source, destination, |copy| self.replace_by(copy)))
    }

    /// Replaces the node's copy with a copy between addresses; see [`set`](Self::set).
    ///
    /// # Safety
    /// As for [`Frontier::copy_raw`].
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed, and the errors of [`Frontier::copy_raw`].
    /// The node is then unchanged.
    #[doc(alias = "cuGraphMemcpyNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemcpyNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub unsafe fn set_raw(&self, copy: RawCopy) -> Result<()> {
        self.replace_by(copy.prepare(self.graph().context())?)
    }

    /// Replaces the memory that the node reads. Its destination, and the shape of the copy, stay.
    ///
    /// A row of bytes is read from memory of its size; a rectangle or a box from memory in which it
    /// lies with its present pitch. The node drops the memory before, unless it was given by an
    /// address ([`RawMemory::keep`](crate::RawMemory::keep)): what keeps that goes with the whole
    /// copy. Existing executables keep the old copy.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::Buffer;
    /// # fn example(graph: &Graph, [x, y, z]: [&Buffer<f32>; 3]) -> Result<()> {
    /// let copy = graph.root().copy(x, y)?;
    /// copy.set_source(z)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`NodeError::CopySize`]: a row has another size than the memory; [`NodeError::PastEnd`]: a
    ///   rectangle or a box does not lie in it.
    /// - [`NodeError::Removed`], and the errors of [`Frontier::copy`] about contexts, overlap, and
    ///   memory of graphs.
    /// - [`ParamError::Bound`](crate::ParamError::Bound): the node takes graph parameters.
    ///
    /// The node is then unchanged.
    #[doc(alias = "cuGraphMemcpyNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemcpyNodeSetParams")]
    pub fn set_source<'a, T: Element>(&self, source: impl NodeMemory<'a, T>) -> Result<()> {
        let source = fixed(source, "MemcpyNode::set_source")?;
        self.set_side(SOURCE, source, |layout| (&mut layout.source, layout.destination.address))
    }

    /// Replaces the memory that the node writes. Its source, and the shape of the copy, stay; see
    /// [`set_source`](Self::set_source).
    ///
    /// # Errors
    /// The errors of [`set_source`](Self::set_source).
    #[doc(alias = "cuGraphMemcpyNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemcpyNodeSetParams")]
    pub fn set_destination<'a, T: Element>(&self, destination: impl NodeMemory<'a, T>) -> Result<()> {
        let destination = fixed(destination, "MemcpyNode::set_destination")?;
        self.set_side(DESTINATION, destination, |layout| (&mut layout.destination, layout.source.address))
    }

    /// `sides` returns the side that changes, and the address of the other one.
    fn set_side<T>(
        &self,
        what: &'static str,
        memory: Slice<'_, T>,
        sides: impl FnOnce(&mut CopyLayout) -> (&mut CopySide, CUdeviceptr),
    ) -> Result<()> {
        let (graph, allocation, place) = (self.graph(), memory.allocation(), Place::default());
        self.getting(ensure_memory(graph, allocation.context(), what, PEER_ADVICE))?;
        let name = self.name();
        self.change(
            |node_params, owners| {
                let NodeParams::Memcpy(layout) = node_params else { return Err(self.removed()) };
                let [width, height, depth] = [layout.width, layout.height, layout.depth];
                let (side, other) = sides(layout);
                ensure_fits(what, &name, memory, side, [width, height, depth])?;
                let gone = core::mem::replace(&mut side.address, memory.address());
                side.space = allocation.space();
                match layout.overlap() {
                    0 => {}
                    bytes => return Err(HandleError::Overlap { bytes }.into()),
                }
                replace_memory(owners, gone, &[other], core::slice::from_ref(allocation));
                place.note(graph, copy_context(graph, owners.iter(), layout));
                Ok(())
            },
            |node_params, give| match node_params {
                NodeParams::Memcpy(layout) => give(&mut params(&place.get(graph), layout)),
                _ => Err(self.removed()),
            },
        )
    }

    fn replace_by(&self, copy: Prepared) -> Result<()> {
        match self.graph().is_wide() {
            true => in_reach(self.graph(), copy, |copy| self.replace_in_reach(copy)),
            false => self.replace_in_reach(copy),
        }
    }

    fn replace_in_reach(&self, (layout, owners): Prepared) -> Result<()> {
        let mut params = params(copy_context(self.graph(), owners.iter(), &layout), &layout);
        self.replace(NodeParams::Memcpy(layout), owners, &mut params)
    }
}

impl Frontier<'_> {
    /// Adds a node that copies `source` to `destination`.
    ///
    /// Both are device, pinned, registered or managed memory, of any
    /// [kind](cuda_handles::MemoryKind). They have the same length and do not overlap.
    ///
    /// Copies of memory of an [allocation node](crate::AllocNode) are added before its [free
    /// node](Self::free), also those that run before it.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::Buffer;
    /// # fn example(graph: &Graph, numbers: &Buffer<f32>, backup: &Buffer<f32>) -> Result<()> {
    /// let copy = graph.root().copy(numbers, backup)?;
    /// copy.then().copy(numbers.slice(..16)?, backup.slice(16..32)?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// **Host memory.** Every launch copies what the memory holds when the node runs. A host node
    /// reads a result in the graph's order ([`host_with`](Self::host_with)), and a copy on a stream
    /// reads it in the stream's order. Once the graph and its executables are dropped and their
    /// streams synchronised, [`SharedHostBuffer::try_unique`](cuda_handles::SharedHostBuffer) makes
    /// it a slice again. Host memory that the caller can access as a slice is not accepted, so that
    /// no reference points to memory that a graph writes:
    ///
    /// ```compile_fail,E0277
    /// # use cuda_handles::{Buffer, Context};
    /// # type Failure = Box<dyn std::error::Error>;
    /// # fn example(
    /// #     context: &Context, graph: &cuda_graph::Graph, buffer: &Buffer<u32>
    /// # ) -> Result<(), Failure> {
    /// let host = context.pinned_zeros::<u32>(8)?;
    /// graph.root().copy(buffer, &host)?; // not shared: host.share() is
    /// println!("{}", host[0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`NodeError::NoElements`], if there is nothing to copy.
    /// - [`Error::Handles`], if the lengths differ ([`Length`](HandleError::Length)), the slices
    ///   overlap ([`Overlap`](HandleError::Overlap)), the memory belongs to a context that the
    ///   graph does not [span](crate::Graph::spanning)
    ///   ([`WrongContext`](HandleError::WrongContext); see [`copy_peer`](Self::copy_peer)), or the
    ///   driver reports an error.
    /// - [`MemoryError::ForeignMemory`], if the memory belongs to an allocation node of another
    ///   graph.
    /// - [`MemoryError::FreedBefore`], if a free node for the memory exists.
    /// - [`NodeError::Removed`], if a node of the frontier was removed.
    #[doc(alias = "cuGraphAddMemcpyNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddMemcpyNode")]
    #[doc(alias = "cudaGraphAddMemcpyNode1D")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaMemcpyAsync")]
    #[doc(alias = "cudaMemcpyDeviceToHost")]
    #[doc(alias = "cudaMemcpyHostToDevice")]
    #[doc(alias = "copy_to_host")]
    #[doc(alias = "copy_from_host")]
    #[doc(alias = "cuMemcpyAsync")]
    #[doc(alias = "memcpy")]
    pub fn copy<'a, 'b, T: Element>(
        &self,
        source: impl NodeMemory<'a, T>,
        destination: impl NodeMemory<'b, T>,
    ) -> Result<MemcpyNode> {
        let placeholders = [source.placeholder(), destination.placeholder()];
        let (source, destination) = (source.operand(), destination.operand());
        let copy = linear(self.graph(), source, destination)?;
        match of_copy::<T>(placeholders, || (stored(source), stored(destination)))? {
            None => self.add_copy(copy),
            Some(binding) => self.add_bound_copy(copy, binding),
        }
    }

    /// Adds a copy with graph parameters.
    #[cold]
    fn add_bound_copy(&self, (layout, owners): Prepared, binding: NewBinding) -> Result<MemcpyNode> {
        let mut params = params(copy_context(self.graph(), owners.iter(), &layout), &layout);
        self.add_bound(NodeParams::Memcpy(layout), owners, &mut params, binding).map(MemcpyNode::wrap)
    }

    /// Adds a node that copies a rectangle: rows of equal length, with a pitch on each side.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`NodeError::NoElements`], if the rectangle is empty.
    /// - [`Error::Handles`], if a pitch is less than the width ([`Pitch`](HandleError::Pitch)), the
    ///   rectangle does not lie in its slice ([`Bounds`](HandleError::Bounds)), source and
    ///   destination overlap ([`Overlap`](HandleError::Overlap)), the memory belongs to another
    ///   context ([`WrongContext`](HandleError::WrongContext)), or the driver reports an error. The
    ///   driver also limits the pitch (`CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
    /// - [`MemoryError::ForeignMemory`], if the memory belongs to an allocation node of another
    ///   graph.
    /// - [`MemoryError::FreedBefore`], if a free node for the memory exists.
    /// - [`NodeError::Removed`], if a node of the frontier was removed.
    #[doc(alias = "cuGraphAddMemcpyNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddMemcpyNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaMemcpy2DAsync")]
    #[doc(alias = "cuMemcpy2DAsync")]
    pub fn copy_2d<T: Element>(&self, copy: Copy2d<'_, T>) -> Result<MemcpyNode> {
        self.copy_3d(copy.layer())
    }

    /// Adds a node that copies a box: layers of rows, with a pitch and a number of rows per layer
    /// on each side.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// The errors of [`copy_2d`](Self::copy_2d). [`Pitch`](HandleError::Pitch) also means that a
    /// layer has fewer rows than the height.
    #[doc(alias = "cuGraphAddMemcpyNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddMemcpyNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaMemcpy3DAsync")]
    #[doc(alias = "cuMemcpy3DAsync")]
    pub fn copy_3d<T: Element>(&self, copy: Copy3d<'_, T>) -> Result<MemcpyNode> {
        self.add_copy(boxed(self.graph(), copy)?)
    }

    /// Adds a node that copies memory of one context to memory of another, of the same length.
    ///
    /// One side belongs to the graph's context, or to one that the graph
    /// [spans](crate::Graph::spanning). Order the other context's streams with the launch by
    /// [`Stream::wait_for`], before and after it.
    ///
    /// If memory of a pool is copied, the graph's device needs access to the pool
    /// ([`MemPool::grant_access`]); where the graph spans both contexts, only copies between two
    /// pools need it, and where it spans one of them and others, the device of that one. A copy on
    /// a stream needs no access.
    ///
    /// [`MemPool::grant_access`]: cuda_handles::MemPool::grant_access
    /// [`Stream::wait_for`]: cuda_handles::Stream::wait_for
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`NodeError::NoElements`], if there is nothing to copy.
    /// - [`Error::Handles`], if the lengths differ ([`Length`](HandleError::Length)), neither side
    ///   belongs to the graph's context ([`WrongContext`](HandleError::WrongContext)), or the
    ///   driver reports an error.
    /// - [`MemoryError::PoolOutOfReach`], if the graph's device cannot access the pool.
    /// - [`MemoryError::ForeignMemory`], if the memory belongs to an allocation node of another
    ///   graph.
    /// - [`MemoryError::FreedBefore`], if a free node for the memory exists.
    /// - [`NodeError::Removed`], if a node of the frontier was removed.
    #[doc(alias = "cuMemcpyPeerAsync")]
    #[doc(alias = "cudaGraphAddMemcpyNode")]
    #[doc(alias = "cuGraphAddMemcpyNode")]
    #[doc(alias = "cudaMemcpyPeerAsync")]
    #[doc(alias = "cudaMemcpy3DPeerAsync")]
    pub fn copy_peer<'a, 'b, T: Element>(
        &self,
        source: impl NodeMemory<'a, T>,
        destination: impl NodeMemory<'b, T>,
    ) -> Result<MemcpyNode> {
        let (source, destination) =
            (fixed(source, "Frontier::copy_peer")?, fixed(destination, "Frontier::copy_peer")?);
        between(self.graph(), source, destination, |copy| self.add_copy(copy))
    }

    /// Adds a node that copies between addresses.
    ///
    /// The driver is asked for the kind of memory at each address; [`MemcpyNode::layout`] returns
    /// it. Pageable host memory is refused, unless
    /// [`RawMemory::pageable`](crate::RawMemory::pageable) allows it.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2) and, for each address, `cuPointerGetAttributes` (CUDA
    /// 7.0).
    ///
    /// # Safety
    /// At every launch of an executable of the graph:
    /// - The memory exists, the source is readable and the destination writable, in all rows that
    ///   `copy` describes. The node keeps the owners of `copy` alive as long as it exists, and so
    ///   does each executable made meanwhile.
    /// - No reference on the host points into host memory that the node writes, and only shared
    ///   references point into host memory that it reads.
    /// - Pageable host memory is valid during the launch call, in which it is read or written.
    ///   Other memory is valid when the node runs.
    ///
    /// # Errors
    /// - [`NodeError::NoElements`], if there is nothing to copy.
    /// - [`NodeError::UnknownMemory`], if the driver knows no memory at an address, or the memory
    ///   is pageable and not allowed to be.
    /// - [`NodeError::PastEnd`], if the memory ends before the copy does.
    /// - [`Error::Handles`], if a pitch is less than the width or a layer has fewer rows than the
    ///   height ([`Pitch`](HandleError::Pitch)), source and destination overlap
    ///   ([`Overlap`](HandleError::Overlap)), or the driver reports an error.
    /// - [`ConditionError::NotInBody`](crate::ConditionError::NotInBody), if the memory is pageable
    ///   and the frontier lies in the body of a conditional node.
    /// - [`NodeError::Removed`], if a node of the frontier was removed.
    #[doc(alias = "cuGraphAddMemcpyNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddMemcpyNode")]
    #[doc(alias = "cudaGraphAddMemcpyNode1D")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaMemcpyAsync")]
    pub unsafe fn copy_raw(&self, copy: RawCopy) -> Result<MemcpyNode> {
        self.add_copy(copy.prepare(self.graph().context())?)
    }

    fn add_copy(&self, copy: Prepared) -> Result<MemcpyNode> {
        match self.graph().is_wide() {
            true => in_reach(self.graph(), copy, |copy| self.add_copy_in_reach(copy)),
            false => self.add_copy_in_reach(copy),
        }
    }

    fn add_copy_in_reach(&self, (layout, owners): Prepared) -> Result<MemcpyNode> {
        let mut params = params(copy_context(self.graph(), owners.iter(), &layout), &layout);
        self.add(NodeParams::Memcpy(layout), owners, &mut params).map(MemcpyNode::wrap)
    }
}

const SOURCE: &str = "the source of a copy";
const DESTINATION: &str = "the destination of a copy";
const PEER_ADVICE: &str = "a node of `Frontier::copy_peer` copies from one context to another";
const NEITHER: &str = "the destination of a copy whose source is not of the graph's context either";

pub(crate) fn linear<T>(
    graph: &impl Spans,
    source: Slice<'_, T>,
    destination: Slice<'_, T>,
) -> Result<Prepared> {
    let layout = CopyLayout::linear(source, destination)?;
    prepared(graph, source.allocation(), destination.allocation(), layout)
}

/// Refuses memory in which one side of a copy does not lie: a row takes all of it.
fn ensure_fits<T>(
    what: &'static str,
    node: &str,
    memory: Slice<'_, T>,
    side: &CopySide,
    [width, height, depth]: [usize; 3],
) -> Result<()> {
    let given = memory.size_bytes();
    if height == 1 && depth == 1 {
        let error = NodeError::CopySize { what, node: node.into(), need: width, given };
        return if given == width { Ok(()) } else { Err(error.into()) };
    }
    let rows = depth.saturating_sub(1).saturating_mul(side.rows).saturating_add(height.saturating_sub(1));
    let need = rows.saturating_mul(side.pitch).saturating_add(width);
    if need <= given {
        return Ok(());
    }
    Err(NodeError::PastEnd { what, address: memory.address(), need, room: given }.into())
}

fn boxed<T>(graph: &impl Spans, copy: Copy3d<'_, T>) -> Result<Prepared> {
    let (source, destination) = (copy.source.allocation(), copy.destination.allocation());
    prepared(graph, source, destination, copy.layout()?)
}

fn prepared(
    graph: &impl Spans,
    source: &Arc<Allocation>,
    destination: &Arc<Allocation>,
    layout: Option<CopyLayout>,
) -> Result<Prepared> {
    let layout = layout.ok_or(Error::Node(NodeError::NoElements { what: "memcpy" }))?;
    ensure_memory(graph, source.context(), SOURCE, PEER_ADVICE)?;
    ensure_memory(graph, destination.context(), DESTINATION, PEER_ADVICE)?;
    Ok((layout, owners(source, destination)))
}

fn peer<T>(graph: &impl Spans, source: Slice<'_, T>, destination: Slice<'_, T>) -> Result<Prepared> {
    let (from, to) = (source.allocation(), destination.allocation());
    let mut layout = CopyLayout::linear(source, destination)?
        .ok_or(Error::Node(NodeError::NoElements { what: "memcpy" }))?;
    if !graph.covers(from.context()) {
        ensure_memory(graph, to.context(), NEITHER, "one of the two has to be of the graph's context")?;
    }
    (layout.source.space, layout.destination.space) = (space_in(graph, from), space_in(graph, to));
    Ok((layout, owners(from, to)))
}

/// The space of memory, as seen from the graph's home.
fn space_in(graph: &impl Spans, memory: &Allocation) -> MemorySpace {
    match memory.space() {
        MemorySpace::Device if !graph.home().is_same(memory.context()) => MemorySpace::Peer,
        space => space,
    }
}

/// Gives a copy between contexts to a node. The driver refuses pools out of reach without a reason;
/// the error names it.
fn between<T, R>(
    graph: &impl Spans,
    source: Slice<'_, T>,
    destination: Slice<'_, T>,
    give: impl FnOnce(Prepared) -> Result<R>,
) -> Result<R> {
    let copy = peer(graph, source, destination)?;
    if graph.is_wide() {
        // `give` does so in such a graph.
        return give(copy);
    }
    in_reach(graph, copy, give)
}

/// Gives a copy to a node, and explains an `INVALID_VALUE` by a pool out of reach.
fn in_reach<R>(
    graph: &impl Spans,
    (layout, owners): Prepared,
    give: impl FnOnce(Prepared) -> Result<R>,
) -> Result<R> {
    let context = copy_context(graph, owners.iter(), &layout);
    let (own, far) = (context.device(), far_pool(context, owners.iter(), &layout));
    give((layout, owners)).map_err(|error| match (&error, far) {
        (Error::Handles(HandleError::Driver { code: CUresult::CUDA_ERROR_INVALID_VALUE, .. }), Some(far)) => {
            Error::Memory(MemoryError::PoolOutOfReach { own: own.ordinal(), of: far.ordinal() })
        }
        _ => error,
    })
}

fn owners(source: &Arc<Allocation>, destination: &Arc<Allocation>) -> Owners {
    let mut owners = Owners::new();
    owners.push(Owner::from(source));
    if !Arc::ptr_eq(source, destination) {
        owners.push(Owner::from(destination));
    }
    owners
}

/// The driver's parameters of a copy node.
pub(crate) fn params(context: &Context, layout: &CopyLayout) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY);
    params.__bindgen_anon_1.memcpy.copyCtx = context.as_raw();
    // SAFETY: the union is zeroed, which is a valid value of this field.
    layout.write_to(unsafe { &mut params.__bindgen_anon_1.memcpy.copyParams });
    params
}
