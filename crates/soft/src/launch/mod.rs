//! Launches of kernels: what may be launched, and the launch itself on the interpreter.

use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_sys::{
    CUaccessPolicyWindow, CUaccessProperty, CUlaunchAttributeID, CUlaunchAttributeValue, CUresult,
};

use crate::device::limits::{
    BLOCKS_PER_SM, MAX_SHARED, MAX_THREADS, REGISTERS_PER_SM, RESERVED_SHARED, SHARED_PER_SM, THREADS_PER_SM,
};
use crate::device::loss::{self, Loss};
use crate::device::properties::{GREATEST_PRIORITY, most_window};
use crate::driver;
use crate::driver::handle::number;
use crate::driver::result_code::{
    Answer, COOPERATIVE_LAUNCH_TOO_LARGE, INVALID_CLUSTER_SIZE, INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES,
    NOT_SUPPORTED,
};
use crate::memory::{self, Allocation};
use crate::module::{Code, Function};
use crate::ptx::{self, DeviceMemory, FaultKind, MemoryFault, Span};
pub(crate) use crate::stream::attribute::{AttributeValue, Attributes};

/// Most blocks of a portable cluster and of one that the kernel allows.
const CLUSTER: u32 = 8;
const NON_PORTABLE_CLUSTER: u32 = 16;

/// The sizes of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub(crate) shared: u32,
}

pub(crate) const COOPERATIVE: u32 = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE.0;
pub(crate) const CLUSTER_DIMENSION: u32 = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION.0;
pub(crate) const PRIORITY: u32 = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY.0;

/// Whether a launch with these attributes is cooperative.
pub(crate) fn is_cooperative(attributes: &Attributes) -> bool {
    // SAFETY: the attribute of this number holds this field.
    attributes.get(&COOPERATIVE).is_some_and(|value| unsafe { value.0.cooperative } != 0)
}

/// Whether a kernel node with these attributes may be updated by the device.
pub(crate) fn is_device_updatable(attributes: &Attributes) -> bool {
    let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE.0;
    // SAFETY: the attribute of this number holds this field.
    attributes.get(&id).is_some_and(|value| unsafe { value.0.deviceUpdatableKernelNode.deviceUpdatable } != 0)
}

/// Whether the launch may start before the kernel in front of it has ended.
pub(crate) fn is_programmatic(attributes: &Attributes) -> bool {
    let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.0;
    // SAFETY: the attribute of this number holds this field.
    attributes.get(&id).is_some_and(|value| unsafe { value.0.programmaticStreamSerializationAllowed } != 0)
}

/// An event that a launch records, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaunchEvent {
    /// The event's handle.
    pub(crate) event: u64,
    /// Once all blocks run, which is before the kernel has done its work; else when they trigger it
    /// or end.
    pub(crate) is_early: bool,
    /// The edge that a capture makes from the kernel to what waits for the event: port and type.
    pub(crate) edge: (u8, u8),
}

/// The events that the attributes ask for.
pub(crate) fn events(attributes: &Attributes) -> Vec<LaunchEvent> {
    let programmatic = attributes.get(&CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT.0);
    let completion = attributes.get(&CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT.0);
    // SAFETY: the attribute of this number holds this field.
    let programmatic = programmatic.map(|value| unsafe { value.0.programmaticEvent }).map(|asked| {
        let is_early = asked.triggerAtBlockStart != 0;
        LaunchEvent { event: number(asked.event), is_early, edge: (if is_early { 2 } else { 1 }, 1) }
    });
    // SAFETY: as above.
    let completion = completion.map(|value| unsafe { value.0.launchCompletionEvent });
    let completion =
        completion.map(|asked| LaunchEvent { event: number(asked.event), is_early: true, edge: (2, 0) });
    programmatic.into_iter().chain(completion).collect()
}

/// Whether kernel nodes have the attribute of this number.
pub(crate) fn is_node_attribute(id: u32) -> bool {
    matches!(id, 1 | 2 | 4 | 5 | 8 | 9 | 10 | 13 | 14)
}

/// Whether an attribute may have a value, as far as that does not depend on the kernel; brings the
/// value into its range where the driver does.
pub(crate) fn check_attribute(attribute: CUlaunchAttributeID, value: &mut CUlaunchAttributeValue) -> Answer {
    type A = CUlaunchAttributeID;
    // SAFETY: the attribute of each number holds its field, and all bytes of the value are given.
    let good = unsafe {
        match attribute {
            A::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => is_window(&value.accessPolicyWindow),
            A::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => (1..=4).contains(&value.syncPolicy.0),
            A::CU_LAUNCH_ATTRIBUTE_PRIORITY => {
                value.priority = value.priority.clamp(GREATEST_PRIORITY, 0);
                true
            }
            A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => value.memSyncDomain.0 <= 1,
            A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => {
                value.memSyncDomainMap.default_ < 4 && value.memSyncDomainMap.remote < 4
            }
            A::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => value.sharedMemCarveout <= 100,
            _ => true,
        }
    };
    if good { Ok(()) } else { Err(INVALID_VALUE) }
}

/// Whether an access policy window is one: as on a GPU a share of hits that is neither below 0 nor
/// above 1, which no number is not, misses that are not persisting, and no more bytes than a device
/// has. What hits are for and what lies there is never looked at.
fn is_window(window: &CUaccessPolicyWindow) -> bool {
    let is_outside = window.hitRatio < 0.0 || window.hitRatio > 1.0;
    !is_outside
        && window.num_bytes <= most_window()
        && window.missProp != CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING
}

/// The cluster that the attributes ask for.
pub(crate) fn cluster(attributes: &Attributes) -> Option<[u32; 3]> {
    // SAFETY: the attribute of this number holds this field.
    let cluster = attributes.get(&CLUSTER_DIMENSION).map(|value| unsafe { value.0.clusterDim })?;
    Some([cluster.x, cluster.y, cluster.z])
}

/// How many blocks of a kernel a multiprocessor holds.
pub(crate) fn blocks_per_sm(code: &Code, threads: u32, dynamic_shared: u32) -> u32 {
    if threads == 0 || threads > code.kernel.max_threads() {
        return 0;
    }
    let warps = threads.div_ceil(32) * 32;
    let shared =
        code.kernel.static_shared_bytes().saturating_add(dynamic_shared).saturating_add(RESERVED_SHARED);
    if shared > MAX_SHARED + RESERVED_SHARED {
        return 0;
    }
    let registers = code.kernel.registers().next_multiple_of(8).max(8) * warps;
    BLOCKS_PER_SM
        .min(THREADS_PER_SM / warps)
        .min(SHARED_PER_SM / shared)
        .min(REGISTERS_PER_SM / registers)
        .max(1)
}

/// The checks of every launch and every kernel node.
pub(crate) fn check(code: &Code, sizes: &Sizes, attributes: &Attributes) -> Answer {
    let Sizes { grid, block, shared } = *sizes;
    if grid.contains(&0) || block.contains(&0) {
        return Err(INVALID_VALUE);
    }
    let threads = block.iter().fold(1u64, |product, size| product.saturating_mul(u64::from(*size)));
    if threads > u64::from(MAX_THREADS) || block[2] > 64 {
        return Err(INVALID_VALUE);
    }
    if grid[0] > i32::MAX as u32 || grid[1] > 65535 || grid[2] > 65535 {
        return Err(INVALID_VALUE);
    }
    let allowed = code.settings.dynamic_shared.load(Ordering::Relaxed).max(0).unsigned_abs();
    if shared > allowed {
        return Err(INVALID_VALUE);
    }
    if threads > u64::from(code.kernel.max_threads())
        || code.kernel.required().is_some_and(|wanted| wanted != block)
    {
        return Err(INVALID_VALUE);
    }
    check_cluster(code, grid, attributes)?;
    if is_cooperative(attributes) {
        let per_sm = u64::from(blocks_per_sm(code, threads as u32, shared));
        let room = per_sm * u64::from(driver::config().multiprocessors);
        if grid.iter().map(|size| u64::from(*size)).product::<u64>() > room {
            return Err(COOPERATIVE_LAUNCH_TOO_LARGE);
        }
    }
    Ok(())
}

/// The most blocks that a cluster of a kernel may have.
pub(crate) fn most_cluster(code: &Code) -> u32 {
    if code.settings.non_portable_cluster.load(Ordering::Relaxed) { NON_PORTABLE_CLUSTER } else { CLUSTER }
}

/// Whether the cluster that the attributes ask for, if they do, fits the kernel and divides the
/// grid.
pub(crate) fn check_cluster(code: &Code, grid: [u32; 3], attributes: &Attributes) -> Answer {
    let Some(cluster) = cluster(attributes) else { return Ok(()) };
    if cluster == [0, 0, 0] {
        return Ok(());
    }
    if driver::config().capability < (9, 0) {
        return Err(NOT_SUPPORTED);
    }
    let blocks = cluster.iter().fold(1u32, |product, size| product.saturating_mul(*size));
    let divides = cluster.iter().zip(grid).all(|(size, grid)| *size != 0 && grid % size == 0);
    if !divides || blocks > most_cluster(code) {
        return Err(INVALID_CLUSTER_SIZE);
    }
    check_preferred_cluster(grid, cluster, attributes)
}

/// Whether the preferred cluster, if there is one, is a multiple of the cluster and divides the
/// grid. One that is too large for the device is never met.
fn check_preferred_cluster(grid: [u32; 3], cluster: [u32; 3], attributes: &Attributes) -> Answer {
    let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION.0;
    // SAFETY: the attribute of this number holds this field.
    let Some(dim) = attributes.get(&id).map(|value| unsafe { value.0.preferredClusterDim }) else {
        return Ok(());
    };
    let preferred = [dim.x, dim.y, dim.z];
    if preferred == [0, 0, 0] {
        return Ok(());
    }
    let sizes = preferred.iter().zip(cluster).zip(grid);
    let divides = sizes.into_iter().all(|((size, cluster), grid)| {
        *size != 0 && size.is_multiple_of(cluster) && grid.is_multiple_of(*size)
    });
    if divides { Ok(()) } else { Err(INVALID_CLUSTER_SIZE) }
}

/// Reads the attributes of a launch.
pub(crate) fn read_attributes(attrs: &[cuda_sys::CUlaunchAttribute]) -> Answer<Attributes> {
    /// A list that repeats its attributes as often is none.
    const MOST: usize = 1024;
    if attrs.len() > MOST {
        return Err(INVALID_VALUE);
    }
    let mut read = Attributes::new();
    for attribute in attrs {
        match attribute.id.0 {
            0 => {}
            1..=14 | 16..=18 => {
                let mut value = attribute.value;
                check_attribute(attribute.id, &mut value)?;
                read.insert(attribute.id.0, AttributeValue(value));
            }
            _ => return Err(INVALID_VALUE),
        }
    }
    Ok(read)
}

/// The arguments of a kernel as the caller gave them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) bytes: Vec<u8>,
    /// They came as one block, by `extra`.
    pub(crate) packed: bool,
    /// The size that came, when packed.
    pub(crate) given: usize,
}

/// Reads the arguments of a kernel. `too_large` is the answer to a packed block that is too large.
///
/// # Safety
/// `params` and `extra` are as the interface demands.
pub(crate) unsafe fn read_arguments(
    code: &Code,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
    too_large: CUresult,
) -> Answer<Arguments> {
    let wanted = code.kernel.param_bytes() as usize;
    if !params.is_null() && !extra.is_null() {
        return Err(INVALID_VALUE);
    }
    if !extra.is_null() {
        // SAFETY: the caller's promise.
        let bytes = unsafe { read_packed(extra, wanted, too_large)? };
        return Ok(bytes);
    }
    let mut bytes = vec![0; wanted];
    let layout = code.kernel.params();
    if layout.is_empty() {
        return Ok(Arguments { bytes, packed: false, given: 0 });
    }
    if params.is_null() {
        return Err(INVALID_VALUE);
    }
    for (index, param) in layout.iter().enumerate() {
        // SAFETY: the array has a pointer for each parameter.
        let from = unsafe { params.add(index).read_unaligned() };
        if from.is_null() {
            return Err(INVALID_VALUE);
        }
        let (start, size) = (param.offset as usize, param.size as usize);
        if let Some(place) = bytes.get_mut(start..start + size) {
            // SAFETY: each pointer is valid for its parameter's size.
            unsafe { place.as_mut_ptr().copy_from_nonoverlapping(from.cast(), size) };
        }
    }
    Ok(Arguments { bytes, packed: false, given: 0 })
}

/// # Safety
/// `extra` is a list of keys and values as the interface demands.
unsafe fn read_packed(extra: *mut *mut c_void, wanted: usize, too_large: CUresult) -> Answer<Arguments> {
    let (mut buffer, mut size) = (core::ptr::null_mut::<c_void>(), None);
    let mut at = extra;
    loop {
        // SAFETY: the list goes on until its end key.
        let key = unsafe { at.read_unaligned() }.addr();
        if key == 0 {
            break;
        }
        // SAFETY: each key but the last has a value.
        let value = unsafe { at.add(1).read_unaligned() };
        match key {
            1 => buffer = value,
            // SAFETY: the value of the size key points to the size.
            2 if !value.is_null() => size = Some(unsafe { value.cast::<usize>().read_unaligned() }),
            _ => return Err(INVALID_VALUE),
        }
        // SAFETY: as above.
        at = unsafe { at.add(2) };
    }
    let given = size.unwrap_or(0);
    if buffer.is_null() || given == 0 {
        return Err(INVALID_VALUE);
    }
    if given > wanted {
        return Err(too_large);
    }
    let mut bytes = vec![0; wanted];
    // SAFETY: the block has the size given, which fits.
    unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(buffer.cast(), given) };
    Ok(Arguments { bytes, packed: true, given })
}

/// The answer to a packed block that is too large at a launch.
pub(crate) const PACKED_TOO_LARGE: CUresult = LAUNCH_OUT_OF_RESOURCES;

/// Values of conditional nodes that a launch may set.
pub(crate) trait Conditions: Send + Sync {
    /// Sets the value behind a handle; a number that the graph lacks has no effect.
    fn set(&self, handle: u64, value: u32);
}

/// The memory as one launch sees it. It holds every allocation that it has found until the launch
/// has ended.
struct View<'a> {
    held: Mutex<Vec<Arc<Allocation>>>,
    conditions: Option<&'a dyn Conditions>,
    device: i32,
}

impl DeviceMemory for View<'_> {
    fn translate(&self, address: u64, len: usize, write: bool) -> Result<Span, MemoryFault> {
        let found = memory::access(address, len, write)
            .map_err(|message| MemoryFault { kind: FaultKind::IllegalAddress, message })?;
        let span = Span {
            device_start: found.start,
            len: found.len as u64,
            host: found.host(),
            writable: found.is_writable(),
        };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if !held.iter().any(|other| other.id == found.id) {
            held.push(found);
        }
        Ok(span)
    }

    fn epoch(&self) -> u64 {
        memory::epoch()
    }

    fn set_conditional(&self, handle: u64, value: u32) -> Result<(), MemoryFault> {
        match self.conditions {
            Some(conditions) => {
                conditions.set(handle, value);
                Ok(())
            }
            None => Err(MemoryFault {
                kind: FaultKind::IllegalAddress,
                message: "a condition is set outside a graph with conditional nodes".to_owned(),
            }),
        }
    }

    fn cancelled(&self) -> bool {
        loss::is_lost(self.device)
    }
}

fn code_of(kind: FaultKind) -> CUresult {
    match kind {
        FaultKind::IllegalAddress => CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
        FaultKind::MisalignedAddress => CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
        FaultKind::Assert => CUresult::CUDA_ERROR_ASSERT,
        FaultKind::IllegalInstruction => CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
        FaultKind::InvalidProgramCounter => CUresult::CUDA_ERROR_INVALID_PC,
        FaultKind::StackOverflow => CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
        FaultKind::BarrierDivergence => CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
        FaultKind::Trap | FaultKind::LaunchFailed | FaultKind::Cancelled => {
            CUresult::CUDA_ERROR_LAUNCH_FAILED
        }
    }
}

/// Runs a kernel to its end.
pub(crate) fn run(
    function: &Function,
    sizes: &Sizes,
    params: &[u8],
    conditions: Option<&dyn Conditions>,
) -> Result<(), Loss> {
    let launch = ptx::Launch {
        kernel: &function.code.kernel,
        grid: sizes.grid,
        block: sizes.block,
        dynamic_shared: sizes.shared,
        params,
        globals: &function.module.addresses,
    };
    let view = View { held: Mutex::default(), conditions, device: function.module.context.device };
    ptx::run(&launch, &view).map_err(|fault| Loss::new(code_of(fault.kind), fault.to_string()))
}
