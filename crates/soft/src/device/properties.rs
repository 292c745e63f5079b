//! The properties of devices: attributes, names, identities.

use cuda_sys::CUdevice_attribute_enum as Attribute;

use crate::device::limits::{
    BLOCKS_PER_SM, MAX_SHARED, MAX_THREADS, REGISTERS_PER_SM, RESERVED_SHARED, SHARED_PER_SM, THREADS_PER_SM,
};
use crate::driver;
use crate::driver::result_code::{Answer, INVALID_VALUE};

/// The largest attribute number of CUDA 13.
const LAST: u32 = 148;

pub(crate) const NAME: &str = "cuda-soft software device";

/// The greatest stream priority. The least is 0.
pub(crate) const GREATEST_PRIORITY: i32 = -5;

/// The most bytes of an access policy window; 0 before compute capability 8.0.
pub(crate) fn most_window() -> usize {
    if driver::config().capability >= (8, 0) { (128 << 20) - (4 << 10) } else { 0 }
}

/// An attribute of a device.
pub(crate) fn attribute(attribute: Attribute, device: i32) -> Answer<i32> {
    type A = Attribute;
    let config = driver::config();
    let (major, minor) = config.capability;
    let since_9 = i32::from(major >= 9);
    let signed = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    Ok(match attribute {
        A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK => signed(MAX_THREADS),
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X | A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y => 1024,
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z => 64,
        A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X => i32::MAX,
        A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y | A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z => 65535,
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK => 48 << 10,
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => signed(MAX_SHARED),
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => signed(SHARED_PER_SM),
        A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK => signed(RESERVED_SHARED),
        A::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY => 64 << 10,
        A::CU_DEVICE_ATTRIBUTE_WARP_SIZE => 32,
        A::CU_DEVICE_ATTRIBUTE_MAX_PITCH => i32::MAX,
        A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK
        | A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR => signed(REGISTERS_PER_SM),
        A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE => 1_000_000,
        A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE => 1_000_000,
        A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH => 64,
        A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE => 1 << 20,
        A::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT | A::CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT => 512,
        A::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT => 32,
        A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => signed(config.multiprocessors),
        A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR => signed(THREADS_PER_SM),
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR => signed(BLOCKS_PER_SM),
        A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT => 2,
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => signed(major),
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => signed(minor),
        A::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID => device + 1,
        A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO => 2,
        supported if is_supported(supported) => 1,
        A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH | A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED => since_9,
        // File descriptors.
        A::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES => 1,
        A::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT => 4,
        A::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE => {
            i32::try_from(most_window()).unwrap_or(i32::MAX)
        }
        A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE if most_window() > 0 => (1 << 20) / 8 * 5,
        // Features that this driver lacks: textures, surfaces, virtual memory management.
        Attribute(1..=LAST) => 0,
        _ => return Err(INVALID_VALUE),
    })
}

/// Features that every device has.
fn is_supported(attribute: Attribute) -> bool {
    type A = Attribute;
    matches!(
        attribute,
        A::CU_DEVICE_ATTRIBUTE_GPU_OVERLAP
            | A::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY
            | A::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS
            | A::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING
            | A::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED
            | A::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY
            | A::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS
            | A::CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED
            | A::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
            | A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH
            | A::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED
            | A::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED
            | A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
            | A::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS
            | A::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR
            | A::CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED
            | A::CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED
            | A::CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED
            | A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
    )
}

/// The UUID of a device.
pub(crate) fn uuid(device: i32) -> [u8; 16] {
    let mut bytes = *b"cuda-soft device";
    bytes[15] = u8::try_from(device).unwrap_or(u8::MAX);
    bytes
}
