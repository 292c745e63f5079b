//! Reading and changing a pool: its attributes, its memory, and which devices may use it.

use super::pool_options::location;
use core::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_sys::CUmemPool_attribute as Attribute;

use cuda_sys::{CUmemAccessDesc, Call};
use smallvec::SmallVec;

use super::pool::{Home, MemPool};
use super::pool_options::{PoolAccess, PoolReuse, PoolUsage};
use crate::context::{Device, capture_mode};
use crate::error::Result;
use crate::reclaim;

/// Whether a pool has ever been told to let another device use its memory.
static ANY_GRANT: AtomicBool = AtomicBool::new(false);

/// Whether it is worth asking what devices a pool is for, which takes driver calls.
pub(super) fn any_grant() -> bool {
    ANY_GRANT.load(Ordering::Acquire)
}

impl MemPool {
    /// How many freed bytes it keeps when the driver waits for a stream, event or context;
    /// everything beyond goes back to the device. A pool starts with 0, so each such wait empties
    /// it.
    ///
    /// Calls `cuMemPoolGetAttribute` (CUDA 11.2).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD")]
    #[doc(alias = "cuMemPoolGetAttribute")]
    #[doc(alias = "cudaMemPoolGetAttribute")]
    pub fn release_threshold(&self) -> Result<u64> {
        self.word(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    }

    /// Sets the [release threshold](Self::release_threshold), in bytes; `u64::MAX` keeps
    /// everything.
    ///
    /// Calls `cuMemPoolSetAttribute` (CUDA 11.2).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuMemPoolSetAttribute")]
    #[doc(alias = "cudaMemPoolSetAttribute")]
    pub fn set_release_threshold(&self, bytes: u64) -> Result<()> {
        self.set(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, bytes)
    }

    /// Whether it may reuse memory in this way. A pool starts with all of them.
    ///
    /// Calls `cuMemPoolGetAttribute` (CUDA 11.2).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    pub fn reuses(&self, way: PoolReuse) -> Result<bool> {
        let mut flag: c_int = 0;
        self.get(way.attribute(), (&raw mut flag).cast())?;
        Ok(flag != 0)
    }

    /// Sets whether it may reuse memory in this way.
    ///
    /// Calls `cuMemPoolSetAttribute` (CUDA 11.2).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    pub fn set_reuse(&self, way: PoolReuse, allowed: bool) -> Result<()> {
        self.set(way.attribute(), c_int::from(allowed))
    }

    /// How much memory it has. Memory that was dropped and is idle is freed first, for which this
    /// usually waits some microseconds, and half a second at most.
    ///
    /// Calls `cuMemPoolGetAttribute` (CUDA 11.3); four calls, so the numbers may be of different
    /// moments.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cudaMemPoolGetAttribute")]
    pub fn usage(&self) -> Result<PoolUsage> {
        self.catch_up()?;
        Ok(PoolUsage {
            used: self.word(Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
            used_high: self.word(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH)?,
            reserved: self.word(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_high: self.word(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?,
        })
    }

    /// Lets its idle memory be free that was dropped.
    fn catch_up(&self) -> Result<()> {
        self.context().ensure_usable()?;
        reclaim::catch_up_frees(self.context());
        let homes: SmallVec<[_; 4]> = self.0.homes().iter().filter_map(Home::at_work).collect();
        homes.iter().for_each(|home| home.settle_soon());
        Ok(())
    }

    /// Makes both high-water marks of [`usage`](Self::usage) begin anew.
    ///
    /// Calls `cuMemPoolSetAttribute` (CUDA 11.3).
    ///
    /// # Errors
    /// The driver refuses the call; the first mark may have been reset then.
    pub fn reset_high_water(&self) -> Result<()> {
        self.set(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0_u64)?;
        self.set(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0_u64)
    }

    /// Gives memory back to the device until no more than `keep` bytes are reserved, or all that is
    /// left is in use.
    ///
    /// Calls `cuMemPoolTrimTo` (CUDA 11.2).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuMemPoolTrimTo")]
    #[doc(alias = "cudaMemPoolTrimTo")]
    pub fn trim(&self, keep: usize) -> Result<()> {
        self.catch_up()?;
        let driver = self.context().driver();
        let _mode = capture_mode::relaxed(driver);
        // SAFETY: the pool is alive.
        let code = unsafe { driver.cuMemPoolTrimTo(self.as_raw(), keep) };
        self.context().check(Call::cuMemPoolTrimTo, code)
    }

    /// The access of a device to its memory.
    ///
    /// Calls `cuMemPoolGetAccess` (CUDA 11.2).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuMemPoolGetAccess")]
    #[doc(alias = "cudaMemPoolGetAccess")]
    pub fn access(&self, device: Device) -> Result<PoolAccess> {
        self.context().ensure_usable()?;
        let (mut flags, mut place) = (PoolAccess::None.as_raw(), location(device));
        let driver = self.context().driver();
        let mode = capture_mode::relaxed(driver);
        // SAFETY: the pool is alive, location and out pointer are valid.
        let code = unsafe { driver.cuMemPoolGetAccess(&raw mut flags, self.as_raw(), &raw mut place) };
        drop(mode);
        self.context().check(Call::cuMemPoolGetAccess, code)?;
        Ok(PoolAccess::from_raw(flags))
    }

    /// Lets another device read and write its memory, including earlier allocations. Kernels of
    /// that device may then have the memory as an argument. That other code granted access is not
    /// seen before the first grant of any pool here.
    ///
    /// Calls `cuMemPoolSetAccess` (CUDA 11.2).
    ///
    /// # Errors
    /// The devices cannot reach each other's memory (`INVALID_DEVICE`), or the driver refuses the
    /// call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemPoolSetAccess")]
    #[doc(alias = "cudaMemPoolSetAccess")]
    pub fn grant_access(&self, device: Device) -> Result<()> {
        self.set_access(device, PoolAccess::ReadWrite)
    }

    /// Restricts the access of another device to the pool's memory.
    ///
    /// Calls `cuMemPoolSetAccess` (CUDA 11.2).
    ///
    /// # Safety
    /// No work of that device, enqueued already or later, accesses the memory in a way that is no
    /// longer allowed: its context would be lost.
    ///
    /// # Errors
    /// The device is the pool's own, or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    pub unsafe fn restrict_access(&self, device: Device, access: PoolAccess) -> Result<()> {
        self.set_access(device, access)
    }

    fn set_access(&self, device: Device, access: PoolAccess) -> Result<()> {
        self.context().ensure_usable()?;
        ANY_GRANT.store(true, Ordering::Release);
        let wish = CUmemAccessDesc { location: location(device), flags: access.as_raw() };
        let driver = self.context().driver();
        let _mode = capture_mode::relaxed(driver);
        // SAFETY: the pool is alive and there is one description.
        let code = unsafe { driver.cuMemPoolSetAccess(self.as_raw(), &raw const wish, 1) };
        self.context().check(Call::cuMemPoolSetAccess, code)
    }

    fn word(&self, attribute: Attribute) -> Result<u64> {
        let mut word = 0_u64;
        self.get(attribute, (&raw mut word).cast())?;
        Ok(word)
    }

    /// `out` points to a place for the attribute's value.
    fn get(&self, attribute: Attribute, out: *mut c_void) -> Result<()> {
        self.context().ensure_usable()?;
        let driver = self.context().driver();
        let _mode = capture_mode::relaxed(driver);
        // SAFETY: the pool is alive; both callers give a place of the attribute's type.
        let code = unsafe { driver.cuMemPoolGetAttribute(self.as_raw(), attribute, out) };
        self.context().check(Call::cuMemPoolGetAttribute, code)
    }

    /// `value` has the attribute's type.
    fn set<V>(&self, attribute: Attribute, mut value: V) -> Result<()> {
        self.context().ensure_usable()?;
        let driver = self.context().driver();
        let _mode = capture_mode::relaxed(driver);
        // SAFETY: the pool is alive; all callers give a value of the attribute's type.
        let code = unsafe { driver.cuMemPoolSetAttribute(self.as_raw(), attribute, (&raw mut value).cast()) };
        self.context().check(Call::cuMemPoolSetAttribute, code)
    }
}
