//! Reading the parameters of one node of other code.

use std::sync::Arc;

use cuda_handles::internal::graph_memory;
use cuda_handles::{
    Context, CopyLayout, CopySide, Error as HandleError, Event, FillLayout, Kernel, Library, MemorySpace,
};
use cuda_launch::internal::Accesses;
use cuda_launch::{LaunchConfig, MemorySyncDomain};
use cuda_sys::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D_v2, CUdeviceptr, CUevent, CUgraphNode, CUgraphNodeParams,
    CUgraphNodeType, CUkernel, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchMemSyncDomain,
    CUmemorytype, CUresult, Call,
};

use crate::alloc_options::AllocOptions;
use crate::error::{Error, Result};
use crate::state::guard::GraphGuard;
use crate::state::host_function::Host;
use crate::state::params::NodeParams;

impl GraphGuard<'_> {
    /// The parameters of a live node. Only a kernel or an event that this library owns is kept
    /// alive.
    pub(crate) fn read(&self, kind: CUgraphNodeType, raw: CUgraphNode) -> Result<NodeParams> {
        let known = match kind {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY => Some(NodeParams::Empty),
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => self.read_kernel(raw)?,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => self.read_copy(raw)?,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => self.read_fill(raw)?,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST => self.read_host(raw)?,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
                self.event(self.recorded_event(raw)?).map(NodeParams::EventRecord)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
                self.event(self.awaited_event(raw)?).map(NodeParams::EventWait)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC => Some(self.read_alloc(raw)?),
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE => {
                let mut address: CUdeviceptr = 0;
                // SAFETY: a live free node, and the out pointer is valid.
                let result = unsafe { self.driver().cuGraphMemFreeNodeGetParams(raw, &raw mut address) };
                self.answer(Call::cuGraphMemFreeNodeGetParams, result)?;
                Some(NodeParams::Free { address, memory: None })
            }
            // Read elsewhere (see `read_conditional`), or not described by the driver.
            _ => None,
        };
        Ok(known.unwrap_or(NodeParams::Other { kind }))
    }

    /// The parameters of a live conditional node. `None` for drivers before CUDA 13.2, which do not
    /// return them.
    pub(crate) fn read_conditional(&self, raw: CUgraphNode) -> Result<Option<CUgraphNodeParams>> {
        let mut params = CUgraphNodeParams::default();
        // SAFETY: a live node, and the out pointer is valid.
        match unsafe { self.driver().cuGraphNodeGetParams(raw, &raw mut params) } {
            Ok(result) => self.answer(Call::cuGraphNodeGetParams, result).map(|()| Some(params)),
            Err(_) => Ok(None),
        }
    }

    /// `None` for a kernel of a context that the graph does not span, of a module, or of a library
    /// that the driver does not name (before CUDA 12.5).
    fn read_kernel(&self, raw: CUgraphNode) -> Result<Option<NodeParams>> {
        let params = self.kernel_params(raw)?;
        let is_its = |context: &&Context| context.as_raw() == params.ctx;
        let Some(context) = self.spanned().find(is_its).filter(|_| !params.kern.is_null()) else {
            return Ok(None);
        };
        let Some(kernel) = self.kernel(params.kern, context) else { return Ok(None) };
        let grid = (params.gridDimX, params.gridDimY, params.gridDimZ);
        let block = (params.blockDimX, params.blockDimY, params.blockDimZ);
        let config = LaunchConfig::new(grid, block).shared_bytes(params.sharedMemBytes);
        let (config, accesses) = (self.with_attributes(config, raw)?, Accesses::unknown());
        Ok(Some(NodeParams::Kernel { kernel, config: config.into(), accesses }))
    }

    /// The kernel behind a raw value. If nobody here knows its library, the result does not own
    /// that.
    fn kernel(&self, raw: CUkernel, context: &Context) -> Option<Kernel> {
        // SAFETY: a node uses the kernel, so that its library is loaded.
        if let Ok(kernel) = unsafe { Kernel::from_raw(raw) } {
            return Some(kernel);
        }
        let mut library = core::ptr::null_mut();
        // SAFETY: as above, and the out pointer is valid.
        let result = unsafe { self.driver().cuKernelGetLibrary(&raw mut library, raw) }.ok()?;
        if !result.is_success() || library.is_null() {
            return None;
        }
        // SAFETY: whoever adopts a graph promises that everything its nodes use lives as long as
        // they do.
        unsafe {
            let library = Library::from_raw(context, library);
            Kernel::from_raw_in(raw, Some(&library)).ok()
        }
    }

    /// The configuration with the attributes of a node.
    fn with_attributes(&self, config: LaunchConfig, raw: CUgraphNode) -> Result<LaunchConfig> {
        let cluster = self.attribute(raw, CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)?;
        let cooperative = self.attribute(raw, CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE)?;
        let priority = self.attribute(raw, CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY)?;
        // SAFETY: each value is of the attribute that was asked for; numbers all, so that any bits
        // are a value.
        let (cluster, cooperative, priority) = unsafe {
            let dim = cluster.clusterDim;
            ((dim.x, dim.y, dim.z), cooperative.cooperative != 0, priority.priority)
        };
        let config = if cluster.0 > 0 { config.cluster(cluster) } else { config };
        let config = if cooperative { config.cooperative() } else { config };
        let config = if priority == 0 { config } else { config.priority(priority) };
        self.with_memory_attributes(config, raw)
    }

    /// The configuration with a node's synchronization domains and shared memory carveout, where
    /// these differ from the driver's default.
    fn with_memory_attributes(&self, config: LaunchConfig, raw: CUgraphNode) -> Result<LaunchConfig> {
        let map = self.attribute(raw, CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)?;
        let domain = self.attribute(raw, CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)?;
        let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        let carveout = self.attribute_if_known(raw, id)?;
        // SAFETY: each value is of the attribute that was asked for; numbers all, so that any bits
        // are a value.
        let (map, domain, carveout) = unsafe {
            let map = map.memSyncDomainMap;
            ((map.default_, map.remote), domain.memSyncDomain, carveout.map(|value| value.sharedMemCarveout))
        };
        let config = match map {
            (0, 0 | 1) => config,
            (default, remote) => config.memory_sync_domain_map(default, remote),
        };
        let is_remote = domain == CUlaunchMemSyncDomain::CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
        let config = if is_remote { config.memory_sync_domain(MemorySyncDomain::Remote) } else { config };
        // The default is -1, or 0 in a node that never had one.
        Ok(match carveout.and_then(|percent| u8::try_from(percent).ok()) {
            Some(percent @ 1..=100) => config.shared_carveout(percent),
            _ => config,
        })
    }

    /// `None` for an attribute that the driver does not know.
    fn attribute_if_known(
        &self,
        raw: CUgraphNode,
        id: CUlaunchAttributeID,
    ) -> Result<Option<CUlaunchAttributeValue>> {
        const UNKNOWN: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
        match self.attribute(raw, id) {
            Ok(value) => Ok(Some(value)),
            Err(Error::Handles(HandleError::Driver { code: UNKNOWN, .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn attribute(&self, raw: CUgraphNode, id: CUlaunchAttributeID) -> Result<CUlaunchAttributeValue> {
        let mut value = CUlaunchAttributeValue::default();
        // SAFETY: a live kernel node, and the out pointer is valid.
        let result = unsafe { self.driver().cuGraphKernelNodeGetAttribute(raw, id, &raw mut value) };
        self.answer(Call::cuGraphKernelNodeGetAttribute, result)?;
        Ok(value)
    }

    fn read_alloc(&self, raw: CUgraphNode) -> Result<NodeParams> {
        let mut params = CUDA_MEM_ALLOC_NODE_PARAMS::default();
        // SAFETY: a live allocation node, and the out pointer is valid.
        let result = unsafe { self.driver().cuGraphMemAllocNodeGetParams(raw, &raw mut params) };
        self.answer(Call::cuGraphMemAllocNodeGetParams, result)?;
        let access = match params.accessDescs.is_null() {
            true => &[],
            // SAFETY: the driver has an array of this length for as long as the node lives.
            false => unsafe { core::slice::from_raw_parts(params.accessDescs, params.accessDescCount) },
        };
        let options = AllocOptions::read(&params.poolProps, access, self.context());
        let space = options.space(self.context());
        let place = graph_memory::Place { address: params.dptr, bytes: params.bytesize, space };
        // SAFETY: the driver describes the node this way.
        let memory =
            unsafe { graph_memory::of_node(self.context(), self.memory_number(), place, options.devices()) };
        Ok(NodeParams::Alloc { memory, options: Arc::new(options) })
    }

    fn read_host(&self, raw: CUgraphNode) -> Result<Option<NodeParams>> {
        let params = self.host_params(raw)?;
        Ok(params.fn_.map(|function| NodeParams::Host(Host::raw(function, params.userData))))
    }

    /// The event behind a raw value. An event that nobody here knows is not owned; `None` for a
    /// known event of another context.
    fn event(&self, raw: CUevent) -> Option<Event> {
        // SAFETY: a node uses the event, and whoever adopts a graph promises that everything its
        // nodes use lives as long as they do.
        self.spanned().find_map(|context| unsafe { Event::from_raw(context, raw) }.ok())
    }

    /// `None` for a copy of arrays.
    fn read_copy(&self, raw: CUgraphNode) -> Result<Option<NodeParams>> {
        let mut params = CUDA_MEMCPY3D_v2::default();
        // SAFETY: a live memcpy node, and the out pointer is valid.
        let result = unsafe { self.driver().cuGraphMemcpyNodeGetParams(raw, &raw mut params) };
        self.answer(Call::cuGraphMemcpyNodeGetParams, result)?;
        let (width, height, depth) = (params.WidthInBytes, params.Height, params.Depth);
        let source = Side {
            extent: [width, height],
            kind: params.srcMemoryType,
            host: params.srcHost.addr(),
            device: params.srcDevice,
            offset: [params.srcXInBytes, params.srcY, params.srcZ],
            steps: [params.srcPitch, params.srcHeight],
        };
        let destination = Side {
            extent: [width, height],
            kind: params.dstMemoryType,
            host: params.dstHost.addr(),
            device: params.dstDevice,
            offset: [params.dstXInBytes, params.dstY, params.dstZ],
            steps: [params.dstPitch, params.dstHeight],
        };
        let (Some(source), Some(destination)) = (self.side(&source)?, self.side(&destination)?) else {
            return Ok(None);
        };
        Ok(Some(NodeParams::Memcpy(CopyLayout { source, destination, width, height, depth }.plain())))
    }

    fn side(&self, side: &Side) -> Result<Option<CopySide>> {
        let (address, space) = match side.kind {
            CUmemorytype::CU_MEMORYTYPE_DEVICE => (side.device, MemorySpace::Device),
            CUmemorytype::CU_MEMORYTYPE_UNIFIED => (side.device, MemorySpace::Found),
            CUmemorytype::CU_MEMORYTYPE_HOST => {
                let address = side.host as CUdeviceptr;
                let found = self.context().address_info(address)?.space;
                // Managed memory has a host address, too.
                let is_pinned = matches!(found, MemorySpace::Pinned | MemorySpace::Managed);
                (address, if is_pinned { MemorySpace::Pinned } else { MemorySpace::Pageable })
            }
            _ => return Ok(None),
        };
        let [x, y, z] = side.offset;
        // A pitch or height of 0 is the smallest possible.
        let step = |given: usize, begin: usize, len| if given == 0 { begin.wrapping_add(len) } else { given };
        let (pitch, rows) = (step(side.steps[0], x, side.extent[0]), step(side.steps[1], y, side.extent[1]));
        let offset = z.wrapping_mul(rows).wrapping_add(y).wrapping_mul(pitch).wrapping_add(x);
        Ok(Some(CopySide { address: address.wrapping_add(offset as u64), space, pitch, rows }))
    }

    /// `None` for an element size that does not exist.
    fn read_fill(&self, raw: CUgraphNode) -> Result<Option<NodeParams>> {
        let params = self.fill_params(raw)?;
        let (width, height) = (params.width, params.height.max(1));
        let Ok(element @ (1 | 2 | 4)) = u8::try_from(params.elementSize) else { return Ok(None) };
        // The driver fills with the lowest bytes of a value, and returns it as it was given, even
        // if it is wider than the element.
        let value = params.value & (u32::MAX >> (32 - 8 * u32::from(element)));
        // The pitch of a single row is meaningless.
        let pitch = if height == 1 { width * usize::from(element) } else { params.pitch };
        let (address, space) = (params.dst, MemorySpace::Found);
        Ok(Some(NodeParams::Memset(FillLayout { address, space, element, value, pitch, width, height })))
    }
}

/// One side of a copy as the driver describes it.
struct Side {
    kind: CUmemorytype,
    host: usize,
    device: CUdeviceptr,
    offset: [usize; 3],
    /// The pitch of rows, and the number of rows in a layer.
    steps: [usize; 2],
    /// The bytes of a row, and the number of rows to copy.
    extent: [usize; 2],
}
