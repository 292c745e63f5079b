//! Which contexts' kernels can use memory.

use core::ffi::c_void;

use cuda_sys::{CUmemoryPool, CUpointer_attribute as Attribute, Call};

use super::allocation::Allocation;
use super::backing::{Backing, HostMemory};
use super::pool::MemPool;
use super::pool_options::PoolAccess;
use super::pool_settings::any_grant;
use crate::context::{Context, capture_mode};
use crate::error::{Error, Result, WrongContext};
use crate::reclaim::HostKind;

/// What lets kernels of another context use plain memory.
const PLAIN: &str = "let the kernel's context use it (`Context::enable_peer_access`), \
                     or copy it to memory of that context (`Stream::copy_peer`)";
/// What lets kernels of another context use memory of a pool.
const POOLED: &str = "let the kernel's device use its pool (`MemPool::grant_access`), \
                      or copy it to memory of that context (`Stream::copy_peer`)";
/// What lets kernels of another context use memory of an allocation node.
const GRAPH: &str = "let the kernel's device use it (`AllocOptions::accessible_from`), \
                     or allocate it on that device (`AllocOptions::on`)";

impl Allocation {
    /// Whether kernels of `context` can read and write the memory: its own context's, those of
    /// other devices' contexts with [peer access](Context::enable_peer_access) to plain memory, of
    /// other devices with [access to the pool](crate::MemPool::grant_access) of pooled memory, and
    /// of all devices, if it is pinned.
    ///
    /// Calls `cuMemPoolGetAccess` (CUDA 11.2) for pooled memory of another device, after
    /// `cuPointerGetAttribute` (CUDA 4.0) if the pool is the device's. No driver call otherwise,
    /// nor before the first grant of any pool.
    ///
    /// # Errors
    /// The driver refuses a call, or the context of the pool is lost.
    #[doc(alias = "cuMemPoolGetAccess")]
    #[inline]
    pub fn is_reachable_from(&self, context: &Context) -> Result<bool> {
        if self.context().is_same(context) { Ok(true) } else { self.is_reachable_across(context) }
    }

    #[cold]
    fn is_reachable_across(&self, context: &Context) -> Result<bool> {
        let may = |access| access == PoolAccess::ReadWrite;
        Ok(match &self.backing {
            _ if self.bytes == 0 => true,
            Backing::Host(HostMemory { kind, .. }) => *kind == HostKind::Pinned,
            // Drivers are not asked what contexts of one device share.
            _ if self.is_on_device_of(context) => false,
            Backing::Plain => context.has_peer_access(self.context()),
            Backing::Pooled(_) if !any_grant() => false,
            Backing::Pooled(Some(pool)) => may(pool.access(context.device())?),
            Backing::Pooled(None) => {
                let pool = MemPool::wrap(self.context(), self.pool_of_device()?, false);
                may(pool.access(context.device())?)
            }
            Backing::Graph(memory) => memory.is_for(context.device()),
            Backing::Foreign(_) | Backing::Variable { .. } | Backing::Imported(_) | Backing::Output(_) => {
                false
            }
        })
    }

    /// `Ok` if kernels of `context` [can use](Self::is_reachable_from) the memory.
    ///
    /// # Errors
    /// They cannot ([`WrongContext`](crate::Error::WrongContext), which says what would let them),
    /// or the driver refuses a call.
    pub fn ensure_reachable_from(&self, context: &Context) -> Result<()> {
        match self.is_reachable_from(context)? {
            true => Ok(()),
            false => Err(self.out_of_reach("the memory", "the kernel", context).into()),
        }
    }

    /// The error of memory that kernels of `context` cannot use.
    #[cold]
    #[doc(hidden)]
    pub fn out_of_reach(
        &self,
        what: impl Into<std::borrow::Cow<'static, str>>,
        with: &'static str,
        context: &Context,
    ) -> WrongContext {
        let advice = match &self.backing {
            _ if self.is_on_device_of(context) => WrongContext::MEMORY,
            Backing::Plain => PLAIN,
            Backing::Pooled(_) => POOLED,
            Backing::Graph(_) => GRAPH,
            Backing::Host(_)
            | Backing::Foreign(_)
            | Backing::Variable { .. }
            | Backing::Imported(_)
            | Backing::Output(_) => WrongContext::MEMORY,
        };
        WrongContext::new(what, self.context(), with, context).advise(advice)
    }

    fn is_on_device_of(&self, context: &Context) -> bool {
        self.context().device() == context.device()
    }

    /// The pool that the device gave it from.
    fn pool_of_device(&self) -> Result<CUmemoryPool> {
        let context = self.context();
        let _current = context.enter()?;
        let _mode = capture_mode::relaxed(context.driver());
        let mut pool: CUmemoryPool = core::ptr::null_mut();
        let place: *mut c_void = (&raw mut pool).cast();
        let attribute = Attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
        // SAFETY: the place is of the attribute's type; the address is asked about, not used.
        let code = unsafe { context.driver().cuPointerGetAttribute(place, attribute, self.address) };
        context.check(Call::cuPointerGetAttribute, code)?;
        Ok(pool)
    }
}

/// Memory out of reach of a stream's kernels.
#[cold]
pub(super) fn out_of_reach(memory: &Allocation, context: &Context) -> Error {
    memory.out_of_reach("the memory", "the stream", context).into()
}
