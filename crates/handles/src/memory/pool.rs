//! Memory pools: where pooled memory comes from and goes back to.

use super::pool_options::location;
use core::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use cuda_sys::{
    CUmemAllocationHandleType, CUmemAllocationType, CUmemPoolHandle_st, CUmemPoolProps, CUmemoryPool, Call,
};
use smallvec::SmallVec;

use super::pool_options::PoolOptions;
use crate::context::{Context, capture_mode};
use crate::destroy::{self, Object};
use crate::error::{Error, Result};
use crate::raw_stream::RawStream;
use crate::reclaim::{self, FreedWith, UnusedPool};
use crate::registry::{Raw, identity};
use crate::stream::Stream;
use crate::sync::{Lock, LockGuard, Rank};

pub(super) struct PoolBox {
    pub(super) raw: Raw<CUmemPoolHandle_st>,
    pub(super) context: Context,
    /// Whether it is destroyed with its last handle. Of other pools no notes are taken.
    pub(super) owned: bool,
    /// The most that it may hold, as it was made; 0 for whatever the device has, or where it is not
    /// known.
    pub(super) max_bytes: OnceLock<usize>,
    /// The streams on which its memory is freed.
    pub(super) homes: Lock<SmallVec<[Home; 4]>>,
    /// Whether some of its memory was or will be freed by the reaper.
    pub(super) fenced: AtomicBool,
}

/// A stream on which memory of a pool is freed. It is not kept: once it is gone, its frees are
/// done.
pub(super) struct Home {
    stream: Weak<RawStream>,
    id: u64,
    /// The stream's count after the last free; 0 if there was none yet.
    freed: u64,
}

/// A pool of device memory. [`Stream::zeros_from`](crate::Stream::zeros_from) allocates from it.
/// Buffers hold their pool.
///
/// It is destroyed with its last handle if all frees of its memory are known to be done, as after
/// [`Stream::synchronize_blocking`] on the streams on which its buffers were dropped; otherwise by
/// the reaper once they are. The drop does not wait.
#[doc(alias = "cudaMemPoolDestroy")]
#[doc(alias = "cuMemPoolDestroy")]
#[derive(Clone)]
pub struct MemPool(pub(super) Arc<PoolBox>);

identity!(MemPool);

impl Context {
    /// A pool of its own on this context's device.
    ///
    /// Calls `cuMemPoolCreate` (CUDA 11.2).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuMemPoolCreate")]
    #[doc(alias = "cudaMemPoolCreate")]
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

    /// The pool that [`Stream::zeros`](crate::Stream::zeros) allocates from, unless other code gave
    /// the device another default pool. It is never destroyed.
    ///
    /// Calls `cuDeviceGetDefaultMemPool` (CUDA 11.2).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuDeviceGetDefaultMemPool")]
    #[doc(alias = "cudaDeviceGetDefaultMemPool")]
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
        let (homes, fenced) = (Lock::new(Rank::PoolHomes, Default::default()), AtomicBool::new(false));
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
}

impl PoolBox {
    pub(super) fn homes(&self) -> LockGuard<'_, SmallVec<[Home; 4]>> {
        self.homes.lock()
    }
}

impl Home {
    /// The stream, if the host has not seen its frees done.
    pub(super) fn at_work(&self) -> Option<Arc<RawStream>> {
        // Not a handle: the last one may be dropped only where its owners drop it.
        self.stream.upgrade().filter(|stream| self.freed != 0 && !stream.has_synced(self.freed))
    }
}

impl Drop for PoolBox {
    fn drop(&mut self) {
        if !self.owned || !destroy::may_call(&self.context) {
            return;
        }
        let homes = self.homes.get_mut();
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
