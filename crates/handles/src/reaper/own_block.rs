//! The calling thread's block.

use core::cell::Cell;

use super::barrier;
use super::blocks::{Block, Blocks};
use crate::sync::AtomicPtr;

/// The blocks of all threads.
pub(crate) static BLOCKS: Blocks = Blocks::starting_with(AtomicPtr::new(core::ptr::null_mut()));

thread_local! {
    // Without a destructor, so that reading it is reading memory.
    static OWN: Cell<Option<&'static Block>> = const { Cell::new(None) };
    static GIVE_BACK: GiveBack = const { GiveBack };
}

/// Gives the thread's block back when the thread ends.
struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        if let Some(block) = OWN.take() {
            block.give_back();
        }
    }
}

/// The calling thread's block. There is none where the barrier that blocks rely on is lacking, and none for destructors that run while the thread
/// ends.
#[inline]
pub(crate) fn own_block() -> Option<&'static Block> {
    OWN.get().or_else(take)
}

#[cold]
fn take() -> Option<&'static Block> {
    if !barrier::is_available() {
        return None;
    }
    GIVE_BACK.try_with(|_| ()).ok()?;
    let block = BLOCKS.take();
    OWN.set(Some(block));
    Some(block)
}
