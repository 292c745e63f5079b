//! Allocation nodes: allocate memory of the graph.

use std::sync::Arc;

use cuda_handles::internal::graph_memory;
use cuda_handles::{Context, Element, Error as HandleError, GraphBuffer, Owner};
use cuda_sys::{CUdeviceptr, CUgraphNode, CUgraphNodeParams, CUresult, Call, Feature};

use crate::alloc_options::{AllocOptions, AllocPlace};
use crate::build::frontier::Frontier;
use crate::build::insertion::NewNode;
use crate::error::{ConditionError, Error, MemoryError, NodeError, Result};
use crate::graph::node::{Node, typed};
use crate::node_kind::NodeKind;
use crate::state::AddedNode;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::NodeParams;

typed! {
    /// A node that allocates memory for nodes of its graph.
    ///
    /// The memory has the same address at every launch. It belongs to the graph from this node to
    /// the [`FreeNode`](crate::FreeNode) that frees it. Without a free node, each launch leaves the
    /// memory to the caller
    /// ([`GraphExec::launch_with_outputs`](crate::GraphExec::launch_with_outputs)).
    ///
    /// Add one with [`Frontier::alloc`].
    #[doc(alias = "CUDA_MEM_ALLOC_NODE_PARAMS")]
    #[doc(alias = "cudaMemAllocNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeMemAlloc")]
    AllocNode, Alloc
}

impl AllocNode {
    /// The memory, for nodes of the graph, as elements of type `T`.
    ///
    /// # Errors
    /// - [`Error::Handles`], if its size is not a multiple of the size of `T`.
    /// - [`NodeError::Removed`], if the node was removed.
    pub fn memory<T: Element>(&self) -> Result<GraphBuffer<T>> {
        match self.node_params()? {
            NodeParams::Alloc { memory, .. } => Ok(GraphBuffer::of(&memory)?),
            // A handle is made only for a record of its kind, and a record keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// The address of the memory, which is the same at every launch.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    #[doc(alias = "cuGraphMemAllocNodeGetParams")]
    #[doc(alias = "cudaGraphMemAllocNodeGetParams")]
    pub fn address(&self) -> Result<CUdeviceptr> {
        self.memory::<u8>().map(|memory| memory.address())
    }

    /// The size of the memory in bytes.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    #[doc(alias = "cuGraphMemAllocNodeGetParams")]
    #[doc(alias = "cudaGraphMemAllocNodeGetParams")]
    pub fn bytes(&self) -> Result<usize> {
        self.memory::<u8>().map(|memory| memory.len())
    }

    /// The location of the memory and the devices that can access it.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    #[doc(alias = "cuGraphMemAllocNodeGetParams")]
    #[doc(alias = "cudaGraphMemAllocNodeGetParams")]
    pub fn options(&self) -> Result<AllocOptions> {
        match self.node_params()? {
            NodeParams::Alloc { options, .. } => Ok((*options).clone()),
            _ => Err(self.removed()),
        }
    }
}

impl Frontier<'_> {
    /// Adds a node that allocates memory for `len` elements on the device of the graph. The memory
    /// is not cleared.
    ///
    /// Nodes that wait for this node can use the memory. If a [free node](Self::free) exists, it
    /// has to wait for all of them. [`Graph::instantiate`](crate::Graph::instantiate) refuses other
    /// uses. Memory without a free node outlives the launch
    /// ([`GraphExec::launch_with_outputs`](crate::GraphExec::launch_with_outputs)).
    ///
    /// A graph with memory nodes has restrictions: it has one executable at a time, its nodes and
    /// edges cannot be removed, and it cannot be cloned. It can be [moved](Self::child_moved) into
    /// a node.
    ///
    /// ```no_run
    /// # use cuda_graph::Result;
    /// # use cuda_handles::{Context, Stream};
    /// # fn example(context: &Context, stream: &Stream) -> Result<()> {
    /// use cuda_graph::ContextExt;
    ///
    /// let graph = context.graph()?;
    /// let (scratch, numbers) = graph.root().alloc::<f32>(1024)?;
    /// let (result, sums) = scratch.then().alloc::<f32>(16)?;
    /// let filled = result.then().fill(&numbers, 1.0)?;
    /// let copied = filled.then().copy(numbers.slice(..16)?, &sums)?;
    /// copied.then().free(&numbers)?;
    /// let mut exec = graph.instantiate()?;
    /// let sums = exec.launch_with_outputs(stream)?.take(&sums)?;
    /// println!("{:?}", sums.read_blocking(stream)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2) and, once per process and device, `cuDeviceTotalMem`
    /// (CUDA 3.2).
    ///
    /// # Errors
    /// - [`NodeError::NoElements`], if `len` is 0.
    /// - [`MemoryError::LargerThanDevice`], if the device has less memory. A
    ///   [launch](crate::GraphExec::launch) reports whether the memory is free, and whether the
    ///   memory of all nodes fits together.
    /// - [`MemoryError::MemoryEmbedded`], if the graph is embedded in a node, and
    ///   [`ConditionError::NotInBody`], if it lies in a body.
    /// - [`NodeError::Removed`], if a node of the frontier was removed.
    /// - [`Error::Handles`], if `len` elements exceed the address space, or the driver reports an
    ///   error.
    #[doc(alias = "cuGraphAddMemAllocNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddMemAllocNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaMallocAsync")]
    #[doc(alias = "cudaMalloc")]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<(AllocNode, GraphBuffer<T>)> {
        self.alloc_with(len, AllocOptions::new())
    }

    /// Adds a node that allocates memory with options: its location, and the devices that can
    /// access it; see [`alloc`](Self::alloc).
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2; CUDA 13.0 for managed memory).
    ///
    /// # Errors
    /// - The errors of [`alloc`](Self::alloc).
    /// - [`MemoryError::NoMemoryThere`], if the driver does not allocate memory of graphs at the
    ///   location.
    /// - [`Error::TooOld`], if the driver is too old for managed memory in graphs.
    #[doc(alias = "cuGraphAddMemAllocNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddMemAllocNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaMallocFromPoolAsync")]
    #[doc(alias = "cudaMallocManaged")]
    pub fn alloc_with<T: Element>(
        &self,
        len: usize,
        options: AllocOptions,
    ) -> Result<(AllocNode, GraphBuffer<T>)> {
        let bytes = bytes_of::<T>(len)?;
        let context = self.graph().context();
        if options.place() == AllocPlace::Managed {
            context.driver().version().ensure(Feature::ManagedGraphMemory)?;
        }
        options.ensure_room(context, bytes)?;
        let access = options.access_params(context);
        let mut params = options.params(context, bytes, &access);
        let subgraph = self.graph().subgraph();
        let mut guard = self.graph().enter()?;
        guard.ensure_takes_memory(subgraph, NodeKind::Alloc)?;
        let new = NewAlloc { context: context.clone(), subgraph, bytes, options: Arc::new(options) };
        let place = new.options.place();
        let id = self.insert(&mut guard, new, &mut params).map_err(|error| match (place, error) {
            (AllocPlace::Here, error) => error,
            (place, Error::Handles(cause)) if is_refusal(&cause) => {
                Error::Memory(MemoryError::NoMemoryThere { place, cause: Box::new(cause) })
            }
            (_, error) => error,
        })?;
        let memory = match guard.record(id).map(|record| &record.node_params) {
            Some(NodeParams::Alloc { memory, .. }) => Arc::clone(memory),
            // `insert` has just entered the record.
            _ => return Err(guard.removed(id)),
        };
        drop(guard);
        let node = AllocNode::wrap(Node::new(self.graph().clone(), id, NodeKind::Alloc));
        Ok((node, GraphBuffer::of(&memory)?))
    }
}

/// An allocation node to be added.
struct NewAlloc {
    context: Context,
    subgraph: SubgraphId,
    bytes: usize,
    options: Arc<AllocOptions>,
}

impl NewNode for NewAlloc {
    /// The address of the memory.
    type Found = CUdeviceptr;

    fn kind(&self) -> NodeKind {
        NodeKind::Alloc
    }

    fn finish(
        &mut self,
        _: &mut GraphGuard<'_>,
        _: CUgraphNode,
        params: &CUgraphNodeParams,
    ) -> Result<CUdeviceptr> {
        // SAFETY: the driver wrote the address there when it added the node.
        Ok(unsafe { params.__bindgen_anon_1.alloc.dptr })
    }

    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, address: CUdeviceptr) -> NodeId {
        let Self { context, subgraph, bytes, options } = self;
        let place = graph_memory::Place { address, bytes, space: options.space(&context) };
        // SAFETY: the driver has allocated as many bytes at this address for the node.
        let memory =
            unsafe { graph_memory::of_node(&context, guard.memory_number(), place, options.devices()) };
        guard.insert(subgraph, added, NodeParams::Alloc { memory, options }, Owners::new())
    }

    fn into_owners(self) -> Owners {
        Owners::from_iter([Owner::Context(self.context)])
    }
}

impl GraphGuard<'_> {
    /// Refuses a memory node in an embedded graph.
    pub(crate) fn ensure_takes_memory(&self, subgraph: SubgraphId, kind: NodeKind) -> Result<()> {
        if subgraph.is_root() {
            return Ok(());
        }
        match self.enclosing_conditional(subgraph) {
            Some(conditional) => {
                Err(Error::Condition(ConditionError::NotInBody { kind, conditional: self.name(conditional) }))
            }
            None => Err(Error::Memory(MemoryError::MemoryEmbedded { kind })),
        }
    }
}

fn bytes_of<T>(len: usize) -> Result<usize> {
    let size = size_of::<T>();
    // No object is larger than half the address space.
    let bytes = len.checked_mul(size).filter(|&bytes| isize::try_from(bytes).is_ok());
    match bytes.ok_or(HandleError::TooLarge { len, size })? {
        0 => Err(Error::Node(NodeError::NoElements { what: "allocation" })),
        bytes => Ok(bytes),
    }
}

/// Whether the driver does not support the kind of memory, as opposed to having none left.
fn is_refusal(error: &HandleError) -> bool {
    let HandleError::Driver { call: Call::cuGraphAddNode, code } = error else {
        return false;
    };
    [
        CUresult::CUDA_ERROR_INVALID_VALUE,
        CUresult::CUDA_ERROR_NOT_SUPPORTED,
        CUresult::CUDA_ERROR_INVALID_DEVICE,
    ]
    .contains(code)
}
