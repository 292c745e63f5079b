//! Fill nodes: set memory to a value.

use cuda_handles::internal::assert_value;
use cuda_handles::{
    Context, Element, Error as HandleError, FillLayout, NodeMemory, Owner, Slice, WrongContext,
};
use cuda_sys::{CUdeviceptr, CUgraphNodeParams, CUgraphNodeType};

use super::raw::RawFill;
use crate::build::frontier::Frontier;
use crate::error::wrong_context::{Spans, ensure_memory};
use crate::error::{Error, NodeError, Result};
use crate::graph::node::typed;
use crate::param::bind::{NewBinding, fixed, of_fill};
use crate::param::fill_value::FillValue;
use crate::param::graph_param::stored;
use crate::state::bindings::ValueBytes;
use crate::state::owners::{Owners, replace_memory};
use crate::state::params::NodeParams;
use crate::state::place::{Place, fill_context};
use crate::state::raw_params::blank;

typed! {
    /// A node that sets each element of a range, or of a rectangle, to one value.
    ///
    /// The memory is device, pinned, registered or managed memory. The node keeps it alive.
    ///
    /// Add one with [`Frontier::fill`], [`fill_2d`](Frontier::fill_2d), [`clear`](Frontier::clear)
    /// or, by an address, [`fill_raw`](Frontier::fill_raw).
    #[doc(alias = "CUDA_MEMSET_NODE_PARAMS")]
    #[doc(alias = "cudaMemsetParams")]
    #[doc(alias = "cudaGraphNodeTypeMemset")]
    MemsetNode, Memset
}

/// A checked fill with its owners.
pub(crate) type Prepared = (FillLayout, Owners);

impl MemsetNode {
    /// The fill: address, value, element size, extent and pitch, and the kind of the memory.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    #[doc(alias = "cuGraphMemsetNodeGetParams")]
    #[doc(alias = "cudaGraphMemsetNodeGetParams")]
    pub fn layout(&self) -> Result<FillLayout> {
        match self.node_params()? {
            NodeParams::Memset(layout) => Ok(layout),
            // A handle is made only for a record of its kind, and a record keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// The address of the first element.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    pub fn address(&self) -> Result<CUdeviceptr> {
        self.layout().map(|layout| layout.address)
    }

    /// The bits of the value, in the lowest bytes.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    pub fn value(&self) -> Result<u32> {
        self.layout().map(|layout| layout.value)
    }

    /// The size of an element in bytes: 1, 2 or 4.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    pub fn element_width(&self) -> Result<usize> {
        self.layout().map(|layout| usize::from(layout.element))
    }

    /// The number of elements, in all rows together.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    pub fn count(&self) -> Result<usize> {
        self.layout().map(|layout| layout.width * layout.height)
    }

    /// Replaces the node's fill: sets `target` to `value`; see [`Frontier::fill`]. Existing
    /// executables keep the old fill.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed;
    /// [`ParamError::Bound`](crate::ParamError::Bound), if it takes graph parameters; and the
    /// errors of [`Frontier::fill`]. The node is then unchanged.
    #[doc(alias = "cuGraphMemsetNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemsetNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set<'a, T: Element>(&self, target: impl NodeMemory<'a, T>, value: T) -> Result<()> {
        const { assert_value::<T>() };
        let target = fixed(target, "MemsetNode::set")?;
        self.replace_by(self.getting(linear(self.graph(), target, value))?)
    }

    /// Replaces the node's fill with the fill of a rectangle; see [`set`](Self::set).
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed, and the errors of [`Frontier::fill_2d`].
    /// The node is then unchanged.
    #[doc(alias = "cuGraphMemsetNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemsetNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set_2d<'a, T: Element>(
        &self,
        target: impl NodeMemory<'a, T>,
        pitch: usize,
        extent: [usize; 2],
        value: T,
    ) -> Result<()> {
        const { assert_value::<T>() };
        self.replace_by(self.getting(rectangle(
            self.graph(),
            fixed(target, "MemsetNode::set_2d")?,
            pitch,
            extent,
            value,
        ))?)
    }

    /// Replaces the node's fill with a fill at an address; see [`set`](Self::set).
    ///
    /// # Safety
    /// As for [`Frontier::fill_raw`].
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed, and the errors of [`Frontier::fill_raw`].
    /// The node is then unchanged.
    #[doc(alias = "cuGraphMemsetNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemsetNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub unsafe fn set_raw(&self, fill: RawFill) -> Result<()> {
        self.replace_by(fill.prepare(self.graph().context())?)
    }

    /// Replaces the node's fill: sets all bytes of `target` to zero; see [`set`](Self::set).
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed, and the errors of [`Frontier::clear`]. The
    /// node is then unchanged.
    #[doc(alias = "cuGraphMemsetNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemsetNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set_clear<'a, T: Element>(&self, target: impl NodeMemory<'a, T>) -> Result<()> {
        let target = fixed(target, "MemsetNode::set_clear")?;
        self.replace_by(self.getting(cleared(self.graph(), target))?)
    }

    /// Replaces the memory that the node fills. Its value stays.
    ///
    /// A fill of a row fills all of the memory; a rectangle lies at its start, with the present
    /// extent and pitch. The node drops the memory before, unless it was given by an address.
    /// Existing executables keep the old fill.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::Buffer;
    /// # fn example(graph: &Graph, x: &Buffer<u32>, y: &Buffer<u32>) -> Result<()> {
    /// let fill = graph.root().fill(x, 7)?;
    /// fill.set_target(y)?;
    /// fill.set_value(8_u32)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`NodeError::FillElement`]: the elements have another size. Rows of zeros are filled
    ///   whatever the elements.
    /// - [`NodeError::PastEnd`]: a rectangle does not lie in the memory.
    /// - [`NodeError::Removed`], and the errors of [`Frontier::fill`].
    /// - [`ParamError::Bound`](crate::ParamError::Bound): the node takes graph parameters.
    ///
    /// The node is then unchanged.
    #[doc(alias = "cuGraphMemsetNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemsetNodeSetParams")]
    pub fn set_target<'a, T: Element>(&self, target: impl NodeMemory<'a, T>) -> Result<()> {
        let target = fixed(target, "MemsetNode::set_target")?;
        let allocation = target.allocation();
        self.getting(ensure_memory(self.graph(), allocation.context(), TARGET, WrongContext::MEMORY))?;
        let name = self.name();
        self.change_layout(|layout, owners| {
            let new = retargeted(layout, target, &name)?;
            replace_memory(owners, layout.address, &[], core::slice::from_ref(allocation));
            *layout = new;
            Ok(())
        })
    }

    /// Replaces the value. The memory stays; see [`set_target`](Self::set_target).
    ///
    /// # Errors
    /// [`NodeError::FillElement`]: the value has another size than the elements of the fill. The
    /// driver may have chosen the size for [`clear`](Frontier::clear), and for captured fills. Or
    /// the errors of [`set_target`](Self::set_target).
    ///
    /// A value of another size than 1, 2 or 4 bytes does not compile.
    #[doc(alias = "cuGraphMemsetNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphMemsetNodeSetParams")]
    pub fn set_value<T: Element>(&self, value: T) -> Result<()> {
        const { assert_value::<T>() };
        let name = self.name();
        self.change_layout(|layout, _| {
            ensure_element::<T>(layout, "the value", &name)?;
            // Elements have no padding.
            layout.value = ValueBytes::of(&value, true).bits().unwrap_or(0);
            Ok(())
        })
    }

    fn change_layout(&self, change: impl FnOnce(&mut FillLayout, &mut Owners) -> Result<()>) -> Result<()> {
        let (graph, place) = (self.graph(), Place::default());
        self.change(
            |node_params, owners| match node_params {
                NodeParams::Memset(layout) => {
                    change(layout, owners)?;
                    place.note(graph, fill_context(graph, owners.iter(), layout));
                    Ok(())
                }
                _ => Err(self.removed()),
            },
            |node_params, give| match node_params {
                NodeParams::Memset(layout) => give(&mut params(&place.get(graph), layout)),
                _ => Err(self.removed()),
            },
        )
    }

    fn replace_by(&self, (layout, owners): Prepared) -> Result<()> {
        let mut params = params(fill_context(self.graph(), owners.iter(), &layout), &layout);
        self.replace(NodeParams::Memset(layout), owners, &mut params)
    }
}

impl Frontier<'_> {
    /// Adds a node that sets each element of `target` to `value`. The element type has 1, 2 or 4
    /// bytes.
    ///
    /// Fills of memory of an [allocation node](crate::AllocNode) are added before its [free
    /// node](Self::free), also those that run before it.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`NodeError::NoElements`], if `target` is empty.
    /// - [`Error::Handles`], if `target` is not aligned to the size of the value
    ///   ([`Unaligned`](cuda_handles::Error::Unaligned)), belongs to another context
    ///   ([`WrongContext`](cuda_handles::Error::WrongContext)), or the driver reports an error.
    /// - [`MemoryError::ForeignMemory`](crate::MemoryError::ForeignMemory), if the memory belongs
    ///   to an allocation node of another graph.
    /// - [`MemoryError::FreedBefore`](crate::MemoryError::FreedBefore), if a free node for the
    ///   memory exists.
    /// - [`NodeError::Removed`], if a node of the frontier was removed.
    ///
    /// A value of another size does not compile. [`cast`](cuda_handles::Slice::cast) the memory to
    /// smaller elements:
    ///
    /// ```compile_fail,E0080
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::Buffer;
    /// # fn example(graph: &Graph, wide: &Buffer<f64>) -> Result<()> {
    /// graph.root().fill(wide, 0.0).map(drop)
    /// # }
    /// # fn main() {
    /// #     let _: fn(&Graph, &Buffer<f64>) -> Result<()> = example;
    /// # }
    /// ```
    #[doc(alias = "cuGraphAddMemsetNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddMemsetNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaMemsetAsync")]
    #[doc(alias = "cuMemsetD8Async")]
    #[doc(alias = "cuMemsetD16Async")]
    #[doc(alias = "cuMemsetD32Async")]
    #[doc(alias = "memset")]
    pub fn fill<'a, T: Element>(
        &self,
        target: impl NodeMemory<'a, T>,
        value: impl FillValue<T>,
    ) -> Result<MemsetNode> {
        const { assert_value::<T>() };
        let placeholders = (target.placeholder(), value.placeholder());
        let target = target.operand();
        let fill = linear(self.graph(), target, value.value())?;
        if let (None, None) = placeholders {
            return self.add_fill(fill);
        }
        let memory = stored(target);
        self.add_bound_fill(fill, |layout| {
            of_fill::<T>(placeholders.0, placeholders.1, memory, layout, false)
        })
    }

    /// Adds a node that sets each element of a rectangle to `value`. The element type has 1, 2 or 4
    /// bytes.
    ///
    /// The rectangle starts at the start of `target`. It has `height` rows of `width` elements.
    /// `pitch` is the distance between the starts of two rows, in elements.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// The errors of [`fill`](Self::fill), and [`Error::Handles`], if the pitch is less than the
    /// width ([`Pitch`](cuda_handles::Error::Pitch)) or the rectangle does not lie in `target`
    /// ([`Bounds`](cuda_handles::Error::Bounds)).
    #[doc(alias = "cuGraphAddMemsetNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddMemsetNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaMemset2DAsync")]
    #[doc(alias = "cuMemsetD2D8Async")]
    #[doc(alias = "cuMemsetD2D16Async")]
    #[doc(alias = "cuMemsetD2D32Async")]
    pub fn fill_2d<'a, T: Element>(
        &self,
        target: impl NodeMemory<'a, T>,
        pitch: usize,
        [width, height]: [usize; 2],
        value: T,
    ) -> Result<MemsetNode> {
        const { assert_value::<T>() };
        let target = fixed(target, "Frontier::fill_2d")?;
        self.add_fill(rectangle(self.graph(), target, pitch, [width, height], value)?)
    }

    /// Adds a node that fills memory at an address.
    ///
    /// The driver is asked for the kind of memory there; [`MemsetNode::layout`] returns it.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2) and `cuPointerGetAttributes` (CUDA 7.0).
    ///
    /// # Safety
    /// At every launch of an executable of the graph, the memory exists and is writable in all rows
    /// that `fill` describes, and no reference on the host points into it. The node keeps the owner
    /// of `fill` alive as long as it exists, and so does each executable made meanwhile.
    ///
    /// # Errors
    /// - [`NodeError::NoElements`], if there is nothing to fill.
    /// - [`NodeError::UnknownMemory`], if the driver knows no memory at the address, or the memory
    ///   is pageable.
    /// - [`NodeError::PastEnd`], if the memory ends before the fill does.
    /// - [`Error::Handles`], if the element size is not 1, 2 or 4
    ///   ([`FillSize`](cuda_handles::Error::FillSize)), an address is not aligned to it
    ///   ([`Unaligned`](cuda_handles::Error::Unaligned)), the pitch is less than the width
    ///   ([`Pitch`](cuda_handles::Error::Pitch)), or the driver reports an error.
    /// - [`NodeError::Removed`], if a node of the frontier was removed.
    #[doc(alias = "cuGraphAddMemsetNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddMemsetNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaMemsetAsync")]
    pub unsafe fn fill_raw(&self, fill: RawFill) -> Result<MemsetNode> {
        self.add_fill(fill.prepare(self.graph().context())?)
    }

    /// Adds a node that sets all bytes of `target` to zero. Elements may have any size and
    /// alignment.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// The errors of [`fill`](Self::fill), without those of size and alignment.
    #[doc(alias = "cuGraphAddMemsetNode")]
    #[doc(alias = "cudaGraphAddMemsetNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaMemsetAsync")]
    #[doc(alias = "memset")]
    #[doc(alias = "zero")]
    pub fn clear<'a, T: Element>(&self, target: impl NodeMemory<'a, T>) -> Result<MemsetNode> {
        let placeholder = target.placeholder();
        let target = target.operand();
        let fill = cleared(self.graph(), target)?;
        if placeholder.is_none() {
            return self.add_fill(fill);
        }
        let memory = stored(target);
        self.add_bound_fill(fill, |layout| of_fill::<T>(placeholder, None, memory, layout, true))
    }

    /// Adds a fill with graph parameters.
    #[cold]
    fn add_bound_fill(
        &self,
        (layout, owners): Prepared,
        bind: impl FnOnce(FillLayout) -> Result<Option<NewBinding>>,
    ) -> Result<MemsetNode> {
        let Some(binding) = bind(layout)? else { return self.add_fill((layout, owners)) };
        let mut params = params(fill_context(self.graph(), owners.iter(), &layout), &layout);
        self.add_bound(NodeParams::Memset(layout), owners, &mut params, binding).map(MemsetNode::wrap)
    }

    fn add_fill(&self, (layout, owners): Prepared) -> Result<MemsetNode> {
        let mut params = params(fill_context(self.graph(), owners.iter(), &layout), &layout);
        self.add(NodeParams::Memset(layout), owners, &mut params).map(MemsetNode::wrap)
    }
}

const TARGET: &str = "the memory of a fill";

pub(crate) fn linear<T: Element>(graph: &impl Spans, target: Slice<'_, T>, value: T) -> Result<Prepared> {
    rectangle(graph, target, target.len(), [target.len(), 1], value)
}

pub(crate) fn rectangle<T: Element>(
    graph: &impl Spans,
    target: Slice<'_, T>,
    pitch: usize,
    extent: [usize; 2],
    value: T,
) -> Result<Prepared> {
    prepare(graph, target, FillLayout::rectangle(target, pitch, extent, value)?)
}

pub(crate) fn cleared<T: Element>(graph: &impl Spans, target: Slice<'_, T>) -> Result<Prepared> {
    prepare(graph, target, FillLayout::clear(target))
}

/// Refuses elements of another size than those of a fill.
fn ensure_element<T>(layout: &FillLayout, what: &'static str, node: &str) -> Result<()> {
    let (size, given) = (usize::from(layout.element), size_of::<T>());
    if size == given {
        return Ok(());
    }
    Err(NodeError::FillElement { node: node.into(), what, size, given }.into())
}

/// A fill with the same value of other memory.
fn retargeted<T: Element>(before: &FillLayout, target: Slice<'_, T>, node: &str) -> Result<FillLayout> {
    let is_row = before.height == 1;
    if is_row && before.value == 0 && size_of::<T>() != usize::from(before.element) {
        return FillLayout::clear(target).ok_or(NodeError::NoElements { what: "memset" }.into());
    }
    ensure_element::<T>(before, TARGET, node)?;
    let (address, align) = (target.address(), u64::from(before.element));
    if !address.is_multiple_of(align) {
        return Err(HandleError::Unaligned { address, align }.into());
    }
    let bytes = target.size_bytes();
    let (width, pitch) = if is_row { (target.len(), bytes) } else { (before.width, before.pitch) };
    let need = before.height.saturating_sub(1).saturating_mul(pitch).saturating_add(width * size_of::<T>());
    if width == 0 {
        return Err(NodeError::NoElements { what: "memset" }.into());
    }
    if need > bytes {
        return Err(NodeError::PastEnd { what: TARGET, address, need, room: bytes }.into());
    }
    Ok(FillLayout { address, space: target.allocation().space(), width, pitch, ..*before })
}

fn prepare<T>(graph: &impl Spans, target: Slice<'_, T>, layout: Option<FillLayout>) -> Result<Prepared> {
    let layout = layout.ok_or(Error::Node(NodeError::NoElements { what: "memset" }))?;
    ensure_memory(graph, target.allocation().context(), TARGET, WrongContext::MEMORY)?;
    Ok((layout, [Owner::from(target.allocation())].into_iter().collect()))
}

/// The driver's parameters of a fill node.
pub(crate) fn params(context: &Context, layout: &FillLayout) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET);
    let fields = &mut params.__bindgen_anon_1;
    fields.memset.dst = layout.address;
    // The driver ignores the pitch of a single row, unless it is less than the row.
    fields.memset.pitch = layout.pitch;
    fields.memset.value = layout.value;
    fields.memset.elementSize = u32::from(layout.element);
    fields.memset.width = layout.width;
    fields.memset.height = layout.height;
    fields.memset.ctx = context.as_raw();
    params
}
