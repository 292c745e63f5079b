//! The cache of host memory: pinned and managed memory for later allocations, and registered memory
//! until it is unregistered.
//!
//! The driver waits for all running work of the device when such memory is freed, and the launches
//! of every thread wait meanwhile. So only [`drain`](crate::reaper::drain) frees it.

use core::any::{Any, TypeId};
use core::ffi::c_void;
use core::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use cuda_sys::{CUdeviceptr, CUresult, Call};

use crate::context::{Context, capture_mode};
use crate::destroy::{self, List, Node, retry_all};
use crate::error::Error;
use crate::registry::Raw;
use crate::sync::{Lock, LockGuard, Rank, process};

/// The kinds of memory that the host can address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// Of `cuMemHostAlloc`.
    Pinned,
    /// Of `cuMemAllocManaged`.
    Managed,
    /// Of `cuMemHostRegister`: the memory belongs to an owner.
    Registered,
}

/// A block of the driver's; a name, which owns nothing by itself.
#[derive(Clone, Debug)]
pub(crate) struct HostBlock {
    pub(crate) context: Context,
    pub(crate) start: Raw<c_void>,
    pub(crate) bytes: usize,
    pub(crate) kind: HostKind,
    /// The owner of registered memory.
    pub(crate) owner: Option<Arc<HostOwner>>,
}

/// The owner of registered memory. It is only used after it was taken out, so it need not be
/// `Sync`.
pub(crate) struct HostOwner(Option<Box<dyn Any + Send>>);

// SAFETY: behind a shared reference nothing is done with the value but to ask for its type.
unsafe impl Sync for HostOwner {}

impl HostOwner {
    pub(crate) fn new(owner: Box<dyn Any + Send>) -> Self {
        Self(Some(owner))
    }

    /// Whether it is an `O`.
    pub(crate) fn is<O: 'static>(&self) -> bool {
        self.0.as_ref().is_some_and(|owner| (**owner).type_id() == TypeId::of::<O>())
    }

    /// The value, if it is an `O`.
    pub(crate) fn into_inner<O: 'static>(mut self) -> Option<O> {
        self.0.take().and_then(|owner| owner.downcast().ok()).map(|owner| *owner)
    }
}

impl Drop for HostOwner {
    fn drop(&mut self) {
        let owner = self.0.take();
        // The memory may not be there in a forked child, and the device may be using it at the end
        // of the process.
        if !process::is_running() {
            core::mem::forget(owner);
            return;
        }
        destroy::dropping("dropping the owner of registered memory", || drop(owner));
    }
}

impl fmt::Debug for HostOwner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HostOwner")
    }
}

/// Unused registered memory, until a drain.
static REGISTERED: List<HostBlock> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));

/// Registered memory that the driver refused to unregister. Freeing it would leave its pages to the
/// device.
static STUCK: Lock<Vec<HostBlock>> = Lock::new(Rank::StuckBlocks, Vec::new());

fn stuck() -> LockGuard<'static, Vec<HostBlock>> {
    STUCK.lock()
}

static CACHE: Lock<Vec<HostBlock>> = Lock::new(Rank::HostCache, Vec::new());

fn cache() -> LockGuard<'static, Vec<HostBlock>> {
    CACHE.lock()
}

/// Caches an unused block.
pub(crate) fn give(block: HostBlock) {
    if block.kind == HostKind::Registered {
        return give_registered(block);
    }
    if destroy::may_call(&block.context) {
        cache().push(block);
    }
}

fn give_registered(block: HostBlock) {
    if destroy::may_call(&block.context) {
        destroy::expect_one();
        REGISTERED.push(Node::new(block));
    } else {
        let_go(block);
    }
}

/// Lets the reaper drop the owner of a block, which may be anybody's.
fn let_go(block: HostBlock) {
    if process::is_running() {
        destroy::drop_later(block.owner);
    }
}

/// Unregisters all pending blocks. Returns how many.
pub(crate) fn unregister_all() -> usize {
    retry_all(&REGISTERED, unregister_waiting)
}

/// Unregisters a block, unless the driver does not permit the call here: then returns it.
fn unregister_waiting(block: HostBlock) -> Result<(), HostBlock> {
    if !destroy::may_call(&block.context) {
        let_go(block);
        return Ok(());
    }
    match unregister(&block) {
        Err(Error::Driver { code: CUresult::CUDA_ERROR_NOT_PERMITTED, .. }) => return Err(block),
        Err(error) if !matches!(error, Error::ContextLost(_)) => {
            stuck().push(block);
            destroy::report("unregistering host memory (it and its owner stay)", error);
            return Ok(());
        }
        _ => {}
    }
    let_go(block);
    Ok(())
}

/// Unregisters the memory of a block, which no work uses.
pub(crate) fn unregister(block: &HostBlock) -> crate::error::Result<()> {
    let driver = block.context.driver();
    let mode = capture_mode::relaxed(driver);
    // SAFETY: the memory was registered for this block.
    let code = unsafe { driver.cuMemHostUnregister(block.start.get()) };
    drop(mode);
    block.context.check(Call::cuMemHostUnregister, code)
}

/// The smallest block with room for `bytes` that wastes no more than that again.
pub(crate) fn take(context: &Context, kind: HostKind, bytes: usize) -> Option<HostBlock> {
    let mut cache = cache();
    let fits = |block: &HostBlock| {
        block.kind == kind
            && block.context.as_raw() == context.as_raw()
            && (bytes..=bytes.saturating_mul(2)).contains(&block.bytes)
    };
    let found =
        cache.iter().enumerate().filter(|(_, block)| fits(block)).min_by_key(|(_, block)| block.bytes);
    let index = found.map(|(index, _)| index)?;
    Some(cache.swap_remove(index))
}

/// How many bytes of a kind are kept for a context.
pub(crate) fn kept(context: &Context, kind: HostKind) -> usize {
    let cache = cache();
    let mine = |block: &&HostBlock| block.kind == kind && block.context.as_raw() == context.as_raw();
    cache.iter().filter(mine).map(|block| block.bytes).sum()
}

/// Frees all of it. Returns how many blocks that were.
pub(crate) fn free_all() -> usize {
    let blocks = core::mem::take(&mut *cache());
    let (mut done, mut refused) = (0, Vec::new());
    for block in blocks {
        if free(&block) { done += 1 } else { refused.push(block) }
    }
    cache().extend(refused);
    done
}

/// Frees a block. False if the driver does not permit the call here.
fn free(block: &HostBlock) -> bool {
    if !destroy::may_call(&block.context) {
        return true;
    }
    let driver = block.context.driver();
    let mode = capture_mode::relaxed(driver);
    // SAFETY: the block came from the driver and has no owner any more, and no work uses it.
    let (call, code) = unsafe {
        match block.kind {
            HostKind::Pinned => (Call::cuMemFreeHost, driver.cuMemFreeHost(block.start.get())),
            HostKind::Managed => {
                (Call::cuMemFree, driver.cuMemFree(block.start.get().expose_provenance() as CUdeviceptr))
            }
            // These are not in that list.
            HostKind::Registered => return true,
        }
    };
    drop(mode);
    if code == CUresult::CUDA_ERROR_NOT_PERMITTED {
        return false;
    }
    if let Err(error) = block.context.check(call, code) {
        destroy::report("freeing host memory", error);
    }
    true
}
