//! The limits of a device.

/// The most threads of a block.
pub(crate) const MAX_THREADS: u32 = 1024;
/// The most shared memory of a block that opts in, in bytes.
pub(crate) const MAX_SHARED: u32 = 227 << 10;
/// Shared memory of a multiprocessor, in bytes.
pub(crate) const SHARED_PER_SM: u32 = 228 << 10;
/// Shared memory that the system reserves in each block, in bytes.
pub(crate) const RESERVED_SHARED: u32 = 1 << 10;
pub(crate) const THREADS_PER_SM: u32 = 2048;
pub(crate) const BLOCKS_PER_SM: u32 = 32;
pub(crate) const REGISTERS_PER_SM: u32 = 65536;
/// The alignment of memory that textures read.
pub(crate) const TEXTURE_ALIGNMENT: u64 = 512;
/// The alignment of the pitch of memory that textures read.
pub(crate) const TEXTURE_PITCH_ALIGNMENT: usize = 32;
