//! The options of a pool, its usage, and the access of devices.

use cuda_sys::CUmemPool_attribute as Attribute;
use cuda_sys::{CUmemAccess_flags, CUmemLocation, CUmemLocationType};

use crate::context::Device;

/// The options of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PoolOptions {
    /// The largest number of bytes that may be allocated at a time; 0 for no limit. Drivers before
    /// CUDA 12.2 ignore it.
    pub max_bytes: usize,
    /// Whether it can be [exported](crate::MemPool::export_fd) to other processes. Default: no.
    pub shareable: bool,
}

/// How much memory a pool has, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolUsage {
    /// In use by allocations.
    pub used: u64,
    /// The most that was in use at a time since the last [reset](crate::MemPool::reset_high_water).
    pub used_high: u64,
    /// Taken from the device.
    pub reserved: u64,
    /// The most that was taken at a time since the last [reset](crate::MemPool::reset_high_water).
    pub reserved_high: u64,
}

/// When a pool may give freed memory to an allocation on another stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PoolReuse {
    /// When that stream waits for the free by events already.
    #[doc(alias = "CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES")]
    FollowEvents,
    /// When the driver happens to see that the free is done.
    #[doc(alias = "CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC")]
    Opportunistic,
    /// By making that stream wait for the free.
    #[doc(alias = "CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES")]
    InternalDependencies,
}

impl PoolReuse {
    pub(super) fn attribute(self) -> Attribute {
        match self {
            Self::FollowEvents => Attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
            Self::Opportunistic => Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
            Self::InternalDependencies => Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
        }
    }
}

/// The access of a device to the memory of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PoolAccess {
    /// Nothing.
    None,
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
}

impl PoolAccess {
    /// The driver's own value.
    #[must_use]
    pub fn as_raw(self) -> CUmemAccess_flags {
        match self {
            Self::None => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
            Self::Read => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
            Self::ReadWrite => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        }
    }
}

impl PoolAccess {
    /// The access of the driver's value; [`None`](Self::None) for unknown values.
    #[must_use]
    pub fn from_raw(raw: CUmemAccess_flags) -> Self {
        let all = [Self::ReadWrite, Self::Read];
        all.into_iter().find(|access| access.as_raw() == raw).unwrap_or(Self::None)
    }
}

pub(super) fn location(device: Device) -> CUmemLocation {
    let mut location =
        CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, ..Default::default() };
    location.__bindgen_anon_1.id = device.as_raw();
    location
}
