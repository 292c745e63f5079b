//! The calling thread's block.

use core::cell::Cell;
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;

use super::barrier;
use super::blocks::{Block, Blocks, SLOTS};
use crate::sync::{AtomicPtr, try_lock};

/// The blocks of all threads.
pub(crate) static BLOCKS: Blocks = Blocks::starting_with(AtomicPtr::new(core::ptr::null_mut()));

/// Whose block is whose, for errors. Locked for moments, when a thread takes its block and when it
/// gives it back.
static HOLDERS: Mutex<Vec<Holder>> = Mutex::new(Vec::new());

struct Holder {
    block: &'static Block,
    thread: Thread,
    /// What was in the block when the thread took it: turns that threads before it have left for
    /// ever.
    left: [u64; SLOTS],
}

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
            // Nobody waits here, in a forked child the least: then an error names the thread as if
            // it had not ended.
            if let Some(mut holders) = try_lock(&HOLDERS) {
                holders.retain(|holder| !core::ptr::eq(holder.block, block));
            }
            block.give_back();
        }
    }
}

/// The calling thread's block. There is none where the barrier that blocks rely on is lacking, and
/// none for destructors that run while the thread ends.
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
    let holder = Holder { block, thread: std::thread::current(), left: block.numbers() };
    let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    holders.retain(|other| !core::ptr::eq(other.block, block));
    holders.push(holder);
    drop(holders);
    OWN.set(Some(block));
    Some(block)
}

/// The threads that use a thing, in words: one for each use that is written down in a block.
pub(crate) fn users(number: u64) -> Vec<String> {
    let own = OWN.get();
    let holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    let user = |(block, slot): (&'static Block, usize)| {
        let holder = holders.iter().find(|holder| core::ptr::eq(holder.block, block));
        match holder {
            Some(holder) if holder.left.get(slot) != Some(&number) => {
                let is_own = own.is_some_and(|own| core::ptr::eq(own, block));
                name(&holder.thread, is_own)
            }
            _ => "a thread that has ended".to_owned(),
        }
    };
    BLOCKS.using(number).map(user).collect()
}

fn name(thread: &Thread, is_own: bool) -> String {
    match (is_own, thread.name()) {
        (true, _) => "this thread".to_owned(),
        (false, Some(name)) => format!("the thread `{}`", name.escape_debug()),
        (false, None) => format!("a thread without a name ({:?})", thread.id()),
    }
}
