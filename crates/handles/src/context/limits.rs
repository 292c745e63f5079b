//! The limits of a device on launches.

use cuda_sys::CUdevice_attribute as Attribute;

use super::device::Device;
use crate::error::Result;

/// A device's limits, read once when its context is made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Threads of a block.
    pub max_threads_per_block: u32,
    /// Threads of a block along x, y and z.
    pub max_block: [u32; 3],
    /// Blocks of a grid along x, y and z.
    pub max_grid: [u32; 3],
    /// Bytes of shared memory of a block, static and dynamic together.
    pub max_shared_bytes: u32,
    /// The same for kernels that ask for more by attribute.
    pub max_shared_bytes_opt_in: u32,
    /// 32-bit registers of a block.
    pub max_registers_per_block: u32,
    /// Threads of a warp.
    pub warp: u32,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The compute capability, such as (9, 0).
    pub compute_capability: (u32, u32),
    /// Whether cooperative launches are possible.
    pub cooperative_launch: bool,
    /// Whether pooled memory is possible; [`Buffer`](crate::Buffer) needs it.
    pub memory_pools: bool,
}

impl Limits {
    pub(crate) fn of(device: Device) -> Result<Self> {
        let read = |attribute| device.attribute(attribute).map(|value| u32::try_from(value).unwrap_or(0));
        Ok(Self {
            max_threads_per_block: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_block: [
                read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
            max_grid: [
                read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            max_shared_bytes: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
            max_shared_bytes_opt_in: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            max_registers_per_block: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?,
            warp: read(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            multiprocessors: read(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            compute_capability: device.compute_capability()?,
            cooperative_launch: read(Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0,
            memory_pools: read(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0,
        })
    }
}
