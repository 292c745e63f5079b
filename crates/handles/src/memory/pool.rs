//! Memory pools: where pooled memory comes from and goes back to.

use core::ffi::{c_int, c_void};
use core::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use cuda_sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType, CUmemAllocationType, CUmemLocation,
    CUmemLocationType, CUmemPool_attribute as Attribute, CUmemPoolHandle_st, CUmemPoolProps, CUmemoryPool,
    Call,
};
use smallvec::SmallVec;

use crate::context::{Context, Device, capture_mode};
use crate::destroy::{self, Object};
use crate::error::{Error, Result};
use crate::raw_stream::RawStream;
use crate::reclaim::FreedWith;
use crate::reclaim::{self, UnusedPool};
use crate::registry::{Raw, identity};
use crate::stream::Stream;

/// What a pool is created with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PoolOptions {
    /// The most bytes that may be allocated from it at a time; 0 for what the device has. Before
    /// CUDA 12.2 drivers take no notice of it.
    pub max_bytes: usize,
    /// Whether it can be [exported](MemPool::export_fd) to other processes. Default: no.
    pub shareable: bool,
}

/// How much memory a pool has, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolUsage {
    /// In use by allocations.
    pub used: u64,
    /// The most that was in use at a time since the last [reset](MemPool::reset_high_water).
    pub used_high: u64,
    /// Taken from the device.
    pub reserved: u64,
    /// The most that was taken at a time since the last [reset](MemPool::reset_high_water).
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
    fn attribute(self) -> Attribute {
        match self {
            Self::FollowEvents => Attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
            Self::Opportunistic => Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
            Self::InternalDependencies => Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
        }
    }
}

/// What a device may do with the memory of a pool.
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
    /// What the driver calls so; what is not known is [`None`](Self::None).
    #[must_use]
    pub fn from_raw(raw: CUmemAccess_flags) -> Self {
        let all = [Self::ReadWrite, Self::Read];
        all.into_iter().find(|access| access.as_raw() == raw).unwrap_or(Self::None)
    }
}

struct PoolBox {
    raw: Raw<CUmemPoolHandle_st>,
    context: Context,
    /// Whether it is destroyed with its last handle. Of other pools no notes are taken.
    owned: bool,
    /// The most that it may hold, as it was made; 0 for whatever the device has, or where it is not
    /// known.
    max_bytes: OnceLock<usize>,
    /// The streams on which its memory is freed.
    homes: Mutex<SmallVec<[Home; 4]>>,
    /// Whether some of its memory was or will be freed by the reaper.
    fenced: AtomicBool,
}

/// A stream on which memory of a pool is freed. It is not kept: once it is gone, its frees are
/// done.
struct Home {
    stream: Weak<RawStream>,
    id: u64,
    /// The stream's count after the last free; 0 if there was none yet.
    freed: u64,
}

/// A pool of device memory. [`Stream::zeros_from`](crate::Stream::zeros_from) allocates from it.
/// Buffers hold their pool.
///
/// It is destroyed with its last handle if all frees of its memory are known to be done, as after
/// [`Stream::synchronize_blocking`] on the streams on which its buffers were dropped; else by the
/// reaper once they are. The drop waits for nothing.
#[derive(Clone)]
pub struct MemPool(Arc<PoolBox>);

identity!(MemPool);

impl Context {
    /// A pool of its own on this context's device.
    ///
    /// Stands on `cuMemPoolCreate`, CUDA 11.2.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuMemPoolCreate")]
    pub fn pool(&self, options: PoolOptions) -> Result<MemPool> {
        self.ensure_usable()?;
        let handle_types = match options.shareable {
            true => CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            false => CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        };
        let props = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: handle_types,
            location: location(self.device()),
            maxSize: options.max_bytes,
            ..Default::default()
        };
        let mut raw = core::ptr::null_mut();
        let mode = capture_mode::relaxed(self.driver());
        // SAFETY: the properties are complete, what they do not say is zero, and the out pointer is
        // valid.
        let code = unsafe { self.driver().cuMemPoolCreate(&raw mut raw, &raw const props) };
        drop(mode);
        self.check(Call::cuMemPoolCreate, code)?;
        let pool = MemPool::wrap(self, raw, true);
        let _ = pool.0.max_bytes.set(options.max_bytes);
        // The driver exports no memory of a pool that was not exported itself; once is enough, and
        // the descriptor need not stay.
        #[cfg(unix)]
        if options.shareable {
            pool.export_fd()?;
        }
        Ok(pool)
    }

    /// The pool that [`Stream::zeros`](crate::Stream::zeros) allocates from unless somebody gave
    /// the device another. It is never destroyed.
    ///
    /// Stands on `cuDeviceGetDefaultMemPool`, CUDA 11.2.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuDeviceGetDefaultMemPool")]
    pub fn default_pool(&self) -> Result<MemPool> {
        self.ensure_usable()?;
        let mut raw = core::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        let code = unsafe { self.driver().cuDeviceGetDefaultMemPool(&raw mut raw, self.device().as_raw()) };
        self.check(Call::cuDeviceGetDefaultMemPool, code)?;
        Ok(MemPool::wrap(self, raw, false))
    }
}

impl MemPool {
    pub(crate) fn wrap(context: &Context, raw: CUmemoryPool, owned: bool) -> Self {
        if owned {
            // Now rather than in a drop: frees may have to be waited for.
            destroy::start();
        }
        let (homes, fenced) = (Mutex::default(), AtomicBool::new(false));
        Self(Arc::new(PoolBox {
            raw: Raw::new(raw),
            context: context.clone(),
            owned,
            max_bytes: OnceLock::new(),
            homes,
            fenced,
        }))
    }

    /// The most that it may hold, if that was said when it was made here.
    pub(super) fn max_bytes(&self) -> Option<usize> {
        self.0.max_bytes.get().copied().filter(|bytes| *bytes > 0)
    }

    /// Says that memory of it was allocated on `home` and will be freed there, so that
    /// [`note_free`](Self::note_free) allocates nothing.
    pub(super) fn expect_frees_on(&self, home: &Stream) {
        if !self.0.owned {
            return;
        }
        let mut homes = self.0.homes();
        if homes.iter().any(|known| known.id == home.id()) {
            return;
        }
        homes.retain(|known| known.stream.strong_count() > 0);
        homes.push(Home { stream: Arc::downgrade(home.raw_stream()), id: home.id(), freed: 0 });
    }

    /// Says that memory of it has just been freed in the order of `home`.
    #[inline]
    pub(super) fn note_free(&self, home: &Stream) {
        if !self.0.owned {
            return;
        }
        let ticket = home.ticket();
        home.raw_stream().set_marked();
        if let Some(known) = self.0.homes().iter_mut().find(|known| known.id == home.id()) {
            known.freed = known.freed.max(ticket);
        }
    }

    /// Says that memory of it will be freed by the reaper.
    pub(super) fn expect_fenced_frees(&self) {
        self.0.fenced.store(true, Ordering::Release);
    }

    /// The driver's own handle.
    #[must_use]
    pub fn as_raw(&self) -> CUmemoryPool {
        self.0.raw.get()
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// How many freed bytes it keeps when the driver waits for a stream, event or context; all
    /// beyond goes back to the device. A pool starts with 0: each such wait empties it.
    ///
    /// Stands on `cuMemPoolGetAttribute`, CUDA 11.2.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD")]
    #[doc(alias = "cuMemPoolGetAttribute")]
    pub fn release_threshold(&self) -> Result<u64> {
        self.word(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    }

    /// Sets the [release threshold](Self::release_threshold), in bytes; `u64::MAX` keeps
    /// everything.
    ///
    /// Stands on `cuMemPoolSetAttribute`, CUDA 11.2.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuMemPoolSetAttribute")]
    pub fn set_release_threshold(&self, bytes: u64) -> Result<()> {
        self.set(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, bytes)
    }

    /// Whether it may reuse memory in this way. A pool starts with all of them.
    ///
    /// Stands on `cuMemPoolGetAttribute`, CUDA 11.2.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn reuses(&self, way: PoolReuse) -> Result<bool> {
        let mut flag: c_int = 0;
        self.get(way.attribute(), (&raw mut flag).cast())?;
        Ok(flag != 0)
    }

    /// Sets whether it may reuse memory in this way.
    ///
    /// Stands on `cuMemPoolSetAttribute`, CUDA 11.2.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn set_reuse(&self, way: PoolReuse, allowed: bool) -> Result<()> {
        self.set(way.attribute(), c_int::from(allowed))
    }

    /// How much memory it has. What was dropped and is idle is freed first, for which this waits
    /// some microseconds as a rule and half a second at most.
    ///
    /// Stands on `cuMemPoolGetAttribute`, CUDA 11.3; four calls, so the numbers may be of different
    /// moments.
    ///
    /// # Errors
    /// What the driver answers.
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
    /// Stands on `cuMemPoolSetAttribute`, CUDA 11.3.
    ///
    /// # Errors
    /// What the driver answers; the first mark may have been reset then.
    pub fn reset_high_water(&self) -> Result<()> {
        self.set(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0_u64)?;
        self.set(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0_u64)
    }

    /// Gives memory back to the device until no more than `keep` bytes are reserved, or all that is
    /// left is in use.
    ///
    /// Stands on `cuMemPoolTrimTo`, CUDA 11.2.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuMemPoolTrimTo")]
    pub fn trim(&self, keep: usize) -> Result<()> {
        self.catch_up()?;
        let driver = self.context().driver();
        let _mode = capture_mode::relaxed(driver);
        // SAFETY: the pool is alive.
        let code = unsafe { driver.cuMemPoolTrimTo(self.as_raw(), keep) };
        self.context().check(Call::cuMemPoolTrimTo, code)
    }

    /// What a device may do with its memory.
    ///
    /// Stands on `cuMemPoolGetAccess`, CUDA 11.2.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuMemPoolGetAccess")]
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

    /// Lets another device read and write its memory, what was allocated before included.
    ///
    /// Stands on `cuMemPoolSetAccess`, CUDA 11.2.
    ///
    /// # Errors
    /// The devices cannot reach each other's memory (`INVALID_DEVICE`), or what the driver answers.
    #[doc(alias = "cuMemPoolSetAccess")]
    pub fn grant_access(&self, device: Device) -> Result<()> {
        self.set_access(device, PoolAccess::ReadWrite)
    }

    /// Takes from another device some or all of what it may do with the pool's memory.
    ///
    /// Stands on `cuMemPoolSetAccess`, CUDA 11.2.
    ///
    /// # Safety
    /// No work of that device, enqueued already or later, does with the memory what is no longer
    /// allowed: it would lose its context.
    ///
    /// # Errors
    /// It is the pool's own device, or what the driver answers.
    pub unsafe fn restrict_access(&self, device: Device, access: PoolAccess) -> Result<()> {
        self.set_access(device, access)
    }

    fn set_access(&self, device: Device, access: PoolAccess) -> Result<()> {
        self.context().ensure_usable()?;
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

impl PoolBox {
    fn homes(&self) -> MutexGuard<'_, SmallVec<[Home; 4]>> {
        self.homes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Home {
    /// The stream, if the host has not seen its frees done.
    fn at_work(&self) -> Option<Arc<RawStream>> {
        // Not a handle: the last one may be dropped only where its owners drop it.
        self.stream.upgrade().filter(|stream| self.freed != 0 && !stream.has_synced(self.freed))
    }
}

impl Drop for PoolBox {
    fn drop(&mut self) {
        if !self.owned || !destroy::may_call(&self.context) {
            return;
        }
        let homes = self.homes.get_mut().unwrap_or_else(PoisonError::into_inner);
        let homes: Vec<_> = homes.iter().filter_map(Home::at_work).collect();
        let fenced = *self.fenced.get_mut();
        if homes.is_empty() && !fenced {
            return destroy::destroy(&self.context, Object::Pool(self.raw));
        }
        reclaim::push_pool(UnusedPool { context: self.context.clone(), raw: self.raw, homes, fenced });
    }
}

impl FreedWith for MemPool {
    fn free_failed(&self, _error: &Error) {}
}

impl fmt::Debug for MemPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemPool").field("raw", &self.0.raw).field("owned", &self.0.owned).finish()
    }
}

fn location(device: Device) -> CUmemLocation {
    let mut location =
        CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, ..Default::default() };
    location.__bindgen_anon_1.id = device.as_raw();
    location
}
