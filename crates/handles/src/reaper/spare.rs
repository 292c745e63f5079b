//! Pinned and managed memory that nobody uses, kept for whoever asks next.
//!
//! The driver waits for all running work of the device when such memory is freed, and the launches of every thread wait meanwhile. So it is
//! freed by [`drain`](super::drain) alone.

use core::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuda_sys::{CUdeviceptr, CUresult, Call};

use super::queue;
use crate::capture_mode;
use crate::context::Context;
use crate::failure;
use crate::raw::Raw;

/// What the host can address as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// Of `cuMemHostAlloc`.
    Pinned,
    /// Of `cuMemAllocManaged`.
    Managed,
}

/// A block of the driver's; a name, which owns nothing by itself.
#[derive(Clone, Debug)]
pub(crate) struct HostBlock {
    pub(crate) context: Context,
    pub(crate) start: Raw<c_void>,
    pub(crate) bytes: usize,
    pub(crate) kind: HostKind,
}

static SPARE: Mutex<Vec<HostBlock>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<HostBlock>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a block that no work uses any more.
pub(crate) fn give(block: HostBlock) {
    if queue::may_call(&block.context) {
        spare().push(block);
    }
}

/// The smallest block that has room for `bytes` without wasting more than as much again.
pub(crate) fn take(context: &Context, kind: HostKind, bytes: usize) -> Option<HostBlock> {
    let mut spare = spare();
    let fits = |block: &HostBlock| {
        block.kind == kind
            && block.context.as_raw() == context.as_raw()
            && (bytes..=bytes.saturating_mul(2)).contains(&block.bytes)
    };
    let found =
        spare.iter().enumerate().filter(|(_, block)| fits(block)).min_by_key(|(_, block)| block.bytes);
    let index = found.map(|(index, _)| index)?;
    Some(spare.swap_remove(index))
}

/// How many bytes of a kind are kept for a context.
pub(crate) fn kept(context: &Context, kind: HostKind) -> usize {
    let spare = spare();
    let mine = |block: &&HostBlock| block.kind == kind && block.context.as_raw() == context.as_raw();
    spare.iter().filter(mine).map(|block| block.bytes).sum()
}

/// Frees all of it. Returns how many blocks that were.
pub(super) fn free_all() -> usize {
    let blocks = core::mem::take(&mut *spare());
    let (mut done, mut refused) = (0, Vec::new());
    for block in blocks {
        if free(&block) { done += 1 } else { refused.push(block) }
    }
    spare().extend(refused);
    done
}

/// Frees a block. False if the driver permits no such call here.
fn free(block: &HostBlock) -> bool {
    if !queue::may_call(&block.context) {
        return true;
    }
    let driver = block.context.driver();
    let mode = capture_mode::relaxed(driver);
    // SAFETY: the block is the driver's, nobody has it any more, and no work uses it.
    let (call, code) = unsafe {
        match block.kind {
            HostKind::Pinned => (Call::cuMemFreeHost, driver.cuMemFreeHost(block.start.get())),
            HostKind::Managed => {
                (Call::cuMemFree, driver.cuMemFree(block.start.get().expose_provenance() as CUdeviceptr))
            }
        }
    };
    drop(mode);
    if code == CUresult::CUDA_ERROR_NOT_PERMITTED {
        return false;
    }
    if let Err(error) = block.context.check(call, code) {
        failure::report("freeing host memory", error);
    }
    true
}
