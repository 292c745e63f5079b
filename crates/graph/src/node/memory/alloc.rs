//! Nodes that allocate memory.

use std::sync::Arc;

use cuda_handles::{Context, Element, Error as HandleError, GraphBuffer, Owner, graph_memory};
use cuda_sys::{CUdeviceptr, CUgraphNode, CUgraphNodeParams, CUresult, Call, Version};

use crate::alloc_options::{AllocOptions, AllocPlace};
use crate::build::frontier::Frontier;
use crate::build::insertion::NewNode;
use crate::error::{Error, Result};
use crate::graph::node::{Node, typed};
use crate::node_kind::NodeKind;
use crate::state::AddedNode;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::NodeParams;

typed! {
    /// A node that allocates memory, which has the same address at every launch.
    AllocNode, Alloc
}

/// The first drivers with managed memory of graphs.
const MANAGED: Version = Version::new(13, 0);

impl AllocNode {
    /// The memory, for nodes of the graph, as elements of a type.
    ///
    /// # Errors
    /// Its size is no multiple of the type's; or the node was removed.
    pub fn memory<T: Element>(&self) -> Result<GraphBuffer<T>> {
        match self.node_params()? {
            NodeParams::Alloc { memory, .. } => Ok(GraphBuffer::of(&memory)?),
            // The handle is made for rows of its kind only, and a row keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// Where the memory is at every launch.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphMemAllocNodeGetParams")]
    pub fn address(&self) -> Result<CUdeviceptr> {
        self.memory::<u8>().map(|memory| memory.address())
    }

    /// The size of the memory.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphMemAllocNodeGetParams")]
    pub fn bytes(&self) -> Result<usize> {
        self.memory::<u8>().map(|memory| memory.len())
    }

    /// How the memory is.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphMemAllocNodeGetParams")]
    pub fn options(&self) -> Result<AllocOptions> {
        match self.node_params()? {
            NodeParams::Alloc { options, .. } => Ok((*options).clone()),
            _ => Err(self.removed()),
        }
    }
}

impl Frontier<'_> {
    /// Adds a node that allocates memory for `len` elements on the graph's device. What is in it is
    /// what was there before.
    ///
    /// Nodes of the graph use it: those that wait for this one, and, if it is [freed](Self::free),
    /// that the free node waits for. [`Graph::instantiate`](crate::Graph::instantiate) refuses
    /// others. What the graph does not free, a launch leaves:
    /// [`GraphExec::launch_with_outputs`](crate::GraphExec::launch_with_outputs).
    ///
    /// A graph with such a node has one executable at a time, and the driver takes neither nodes
    /// nor edges out of it and makes no clones of it; it can be [moved](Self::child_moved) into a
    /// node.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2, and, once in a process for each device, on
    /// `cuDeviceTotalMem`.
    ///
    /// ```no_run
    /// # fn example(context: &cuda_handles::Context, stream: &cuda_handles::Stream) -> cuda_graph::Result<()> {
    /// use cuda_graph::ContextExt;
    ///
    /// let graph = context.graph()?;
    /// let (scratch, numbers) = graph.root().alloc::<f32>(1024)?;
    /// let (result, sums) = scratch.then().alloc::<f32>(16)?;
    /// let filled = result.then().fill(&numbers, 1.0)?;
    /// let copied = filled.then().copy(numbers.slice(..16)?, &sums)?;
    /// copied.then().free(&numbers)?;
    /// let mut exec = graph.into_exec()?;
    /// let sums = exec.launch_with_outputs(stream)?.take(&sums)?;
    /// println!("{:?}", sums.read_blocking(stream)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No elements; more than the device has ([`Error::LargerThanDevice`]); a graph that is
    /// embedded in a node, which takes no memory nodes ([`Error::MemoryEmbedded`]); a node of the
    /// frontier was removed; or what the driver answers. Whether there is room for it, and for all
    /// nodes together, is seen at a [launch](crate::GraphExec::launch).
    #[doc(alias = "cuGraphAddMemAllocNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<(AllocNode, GraphBuffer<T>)> {
        self.alloc_with(len, AllocOptions::new())
    }

    /// Adds a node that allocates memory of a kind; see [`alloc`](Self::alloc).
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2; for managed memory CUDA 13.0.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc); a place that the driver has no memory of graphs at
    /// ([`Error::NoMemoryThere`]), or is too old for.
    #[doc(alias = "cuGraphAddMemAllocNode")]
    pub fn alloc_with<T: Element>(
        &self,
        len: usize,
        options: AllocOptions,
    ) -> Result<(AllocNode, GraphBuffer<T>)> {
        let bytes = bytes_of::<T>(len)?;
        let context = self.graph().context();
        let found = context.driver().version();
        if options.place() == AllocPlace::Managed && found < MANAGED {
            return Err(Error::TooOld { what: "managed memory of a graph", needs: MANAGED, found });
        }
        options.ensure_room(context, bytes)?;
        let access = options.access_params(context);
        let mut params = options.params(context, bytes, &access);
        let subgraph = self.graph().subgraph();
        let mut guard = self.graph().enter()?;
        guard.ensure_takes_memory(subgraph, NodeKind::Alloc)?;
        let new = NewAlloc { context: context.clone(), subgraph, bytes, options: Arc::new(options) };
        let place = new.options.place();
        let id = self.insert(&mut guard, new, &mut params).map_err(|error| match place {
            AllocPlace::Here => error,
            place if is_refusal(&error) => Error::NoMemoryThere { place, cause: Box::new(error) },
            _ => error,
        })?;
        let memory = match guard.record(id).map(|record| &record.node_params) {
            Some(NodeParams::Alloc { memory, .. }) => Arc::clone(memory),
            // The record is what was just entered.
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
        // SAFETY: the driver wrote it there when it took the node.
        Ok(unsafe { params.__bindgen_anon_1.alloc.dptr })
    }

    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, address: CUdeviceptr) -> NodeId {
        let Self { context, subgraph, bytes, options } = self;
        let place = graph_memory::Place { address, bytes, space: options.space(&context) };
        // SAFETY: the driver has given the node this address for as many bytes.
        let memory = unsafe { graph_memory::of_node(&context, guard.memory_number(), place) };
        guard.insert(subgraph, added, NodeParams::Alloc { memory, options }, Owners::new())
    }

    fn into_owners(self) -> Owners {
        Owners::from_iter([Owner::Context(self.context)])
    }
}

impl GraphGuard<'_> {
    /// Refuses a memory node in a graph that the driver takes none in.
    pub(crate) fn ensure_takes_memory(&self, place: SubgraphId, kind: NodeKind) -> Result<()> {
        if place.is_root() {
            return Ok(());
        }
        match self.enclosing_conditional(place) {
            Some(conditional) => Err(Error::NotInBody { kind, conditional: self.name(conditional) }),
            None => Err(Error::MemoryEmbedded { kind }),
        }
    }
}

fn bytes_of<T>(len: usize) -> Result<usize> {
    let size = size_of::<T>();
    // As for all memory: no object is larger than half the address space.
    let bytes = len.checked_mul(size).filter(|&bytes| isize::try_from(bytes).is_ok());
    match bytes.ok_or(HandleError::TooLarge { len, size })? {
        0 => Err(Error::NoElements { what: "allocation" }),
        bytes => Ok(bytes),
    }
}

/// Whether the driver has no memory of the kind, rather than none left.
fn is_refusal(error: &Error) -> bool {
    let Error::Handles(HandleError::Driver { call: Call::cuGraphAddNode, code }) = error else {
        return false;
    };
    [
        CUresult::CUDA_ERROR_INVALID_VALUE,
        CUresult::CUDA_ERROR_NOT_SUPPORTED,
        CUresult::CUDA_ERROR_INVALID_DEVICE,
    ]
    .contains(code)
}
