//! Nodes that fill memory.

use cuda_handles::{Context, Element, FillLayout, NodeMemory, Owner, Slice, WrongContext, assert_value};
use cuda_sys::{CUdeviceptr, CUgraphNodeParams, CUgraphNodeType};

use super::raw::RawFill;
use crate::build::frontier::Frontier;
use crate::error::wrong_context::ensure_memory;
use crate::error::{Error, Result};
use crate::graph::node::typed;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;

typed! {
    /// A node that sets each element of a range or a rectangle of memory to one value: device
    /// memory, pinned or managed memory.
    MemsetNode, Memset
}

/// A fill, checked, with what it keeps alive.
type Prepared = (FillLayout, Owners);

impl MemsetNode {
    /// What is filled with what, and where the memory lies.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphMemsetNodeGetParams")]
    pub fn layout(&self) -> Result<FillLayout> {
        match self.node_params()? {
            NodeParams::Memset(layout) => Ok(layout),
            // The handle is made for rows of its kind only, and a row keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// The address of the first element.
    ///
    /// # Errors
    /// The node was removed.
    pub fn address(&self) -> Result<CUdeviceptr> {
        self.layout().map(|layout| layout.address)
    }

    /// The bits of the value, in the lowest bytes.
    ///
    /// # Errors
    /// The node was removed.
    pub fn value(&self) -> Result<u32> {
        self.layout().map(|layout| layout.value)
    }

    /// The size of an element in bytes: 1, 2 or 4.
    ///
    /// # Errors
    /// The node was removed.
    pub fn element_width(&self) -> Result<usize> {
        self.layout().map(|layout| usize::from(layout.element))
    }

    /// The number of elements, those of all rows.
    ///
    /// # Errors
    /// The node was removed.
    pub fn count(&self) -> Result<usize> {
        self.layout().map(|layout| layout.width * layout.height)
    }

    /// Fills `target` with `value` from now on, in place of what it was made for. Executables made
    /// before go on as they are.
    ///
    /// Stands on `cuGraphNodeSetParams`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`Frontier::fill`]; the node is as it was then.
    #[doc(alias = "cuGraphMemsetNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set<'a, T: Element>(&self, target: impl NodeMemory<'a, T>, value: T) -> Result<()> {
        const { assert_value::<T>() };
        self.replace_by(self.getting(linear(self.graph().context(), target.operand(), value))?)
    }

    /// Fills a rectangle from now on; see [`set`](Self::set).
    ///
    /// # Errors
    /// As [`Frontier::fill_2d`].
    pub fn set_2d<'a, T: Element>(
        &self,
        target: impl NodeMemory<'a, T>,
        pitch: usize,
        extent: [usize; 2],
        value: T,
    ) -> Result<()> {
        const { assert_value::<T>() };
        self.replace_by(self.getting(rectangle(
            self.graph().context(),
            target.operand(),
            pitch,
            extent,
            value,
        ))?)
    }

    /// Fills memory at an address from now on; see [`set`](Self::set).
    ///
    /// # Safety
    /// As [`Frontier::fill_raw`].
    ///
    /// # Errors
    /// As [`Frontier::fill_raw`].
    pub unsafe fn set_raw(&self, fill: RawFill) -> Result<()> {
        self.replace_by(fill.prepare(self.graph().context())?)
    }

    /// Sets all bytes of `target` to zero from now on; see [`set`](Self::set).
    ///
    /// # Errors
    /// As [`Frontier::clear`].
    pub fn set_clear<'a, T: Element>(&self, target: impl NodeMemory<'a, T>) -> Result<()> {
        self.replace_by(self.getting(cleared(self.graph().context(), target.operand()))?)
    }

    fn replace_by(&self, (layout, owners): Prepared) -> Result<()> {
        let mut params = params(self.graph().context(), &layout);
        self.replace(NodeParams::Memset(layout), owners, &mut params)
    }
}

impl Frontier<'_> {
    /// Adds a node that sets each element of `target` to `value`, of a type of 1, 2 or 4 bytes.
    ///
    /// Memory of the graph is filled by nodes that are added before its [free node](Self::free),
    /// also those that run before that.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// Memory that is not aligned to the size of the value, no elements, memory of another context,
    /// or of the graph for which there is a free node ([`Error::FreedBefore`]); a node of the
    /// frontier was removed; or what the driver answers. A value of another size does not compile:
    /// [`cast`](cuda_handles::Slice::cast) the memory to smaller elements.
    ///
    /// ```compile_fail,E0080
    /// # fn example(graph: &cuda_graph::Graph, wide: &cuda_handles::Buffer<f64>) -> cuda_graph::Result<()> {
    /// graph.root().fill(wide, 0.0).map(drop)
    /// # }
    /// # fn main() {
    /// #     let _: fn(&cuda_graph::Graph, &cuda_handles::Buffer<f64>) -> cuda_graph::Result<()> = example;
    /// # }
    /// ```
    #[doc(alias = "cuGraphAddMemsetNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn fill<'a, T: Element>(&self, target: impl NodeMemory<'a, T>, value: T) -> Result<MemsetNode> {
        const { assert_value::<T>() };
        self.add_fill(linear(self.graph().context(), target.operand(), value)?)
    }

    /// Adds a node that sets each element of a rectangle to `value`, of a type of 1, 2 or 4 bytes:
    /// `height` rows of `width` elements, one `pitch` elements behind the other, from the start of
    /// `target` on.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`fill`](Self::fill); a pitch below the width, or a rectangle that leaves the slice.
    #[doc(alias = "cuGraphAddMemsetNode")]
    pub fn fill_2d<'a, T: Element>(
        &self,
        target: impl NodeMemory<'a, T>,
        pitch: usize,
        [width, height]: [usize; 2],
        value: T,
    ) -> Result<MemsetNode> {
        const { assert_value::<T>() };
        self.add_fill(rectangle(self.graph().context(), target.operand(), pitch, [width, height], value)?)
    }

    /// Adds a node that fills memory at an address. The driver is asked what memory it is of, and
    /// [`MemsetNode::layout`] tells.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2, and `cuPointerGetAttributes`, CUDA 7.0.
    ///
    /// # Safety
    /// At every launch of an executable of the graph, the memory is there and writable over all the
    /// rows that the description names, and the host has no references into it. The owner given is
    /// kept as long as the node, and as long as an executable made of it meanwhile can run.
    ///
    /// # Errors
    /// No elements, or ones of other than 1, 2 or 4 bytes; memory that is not aligned to that size;
    /// an address that the driver knows no memory at; more bytes than are left there; a pitch below
    /// the width; a node of the frontier was removed; or what the driver answers.
    #[doc(alias = "cuGraphAddMemsetNode")]
    pub unsafe fn fill_raw(&self, fill: RawFill) -> Result<MemsetNode> {
        self.add_fill(fill.prepare(self.graph().context())?)
    }

    /// Adds a node that sets all bytes of `target` to zero, whatever its elements; as
    /// [`fill`](Self::fill) in all else.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`fill`](Self::fill), but for the size and the place of an element.
    #[doc(alias = "cuGraphAddMemsetNode")]
    #[doc(alias = "cudaGraphAddMemsetNode")]
    pub fn clear<'a, T: Element>(&self, target: impl NodeMemory<'a, T>) -> Result<MemsetNode> {
        self.add_fill(cleared(self.graph().context(), target.operand())?)
    }

    fn add_fill(&self, (layout, owners): Prepared) -> Result<MemsetNode> {
        let mut params = params(self.graph().context(), &layout);
        self.add(NodeParams::Memset(layout), owners, &mut params).map(MemsetNode::wrap)
    }
}

fn linear<T: Element>(context: &Context, target: Slice<'_, T>, value: T) -> Result<Prepared> {
    rectangle(context, target, target.len(), [target.len(), 1], value)
}

fn rectangle<T: Element>(
    context: &Context,
    target: Slice<'_, T>,
    pitch: usize,
    extent: [usize; 2],
    value: T,
) -> Result<Prepared> {
    prepare(context, target, FillLayout::rectangle(target, pitch, extent, value)?)
}

fn cleared<T: Element>(context: &Context, target: Slice<'_, T>) -> Result<Prepared> {
    prepare(context, target, FillLayout::clear(target))
}

fn prepare<T>(context: &Context, target: Slice<'_, T>, layout: Option<FillLayout>) -> Result<Prepared> {
    let layout = layout.ok_or(Error::NoElements { what: "memset" })?;
    ensure_memory(context, target.allocation().context(), "the memory of a fill", WrongContext::MEMORY)?;
    Ok((layout, [Owner::from(target.allocation())].into_iter().collect()))
}

/// The driver's form of a fill.
pub(crate) fn params(context: &Context, layout: &FillLayout) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET);
    let to = &mut params.__bindgen_anon_1;
    to.memset.dst = layout.address;
    // Of no meaning for one row, but it may not be less than the row, and it is not.
    to.memset.pitch = layout.pitch;
    to.memset.value = layout.value;
    to.memset.elementSize = u32::from(layout.element);
    to.memset.width = layout.width;
    to.memset.height = layout.height;
    to.memset.ctx = context.as_raw();
    params
}
