//! The slots of the calling thread.

use core::cell::Cell;
use std::thread::Thread;

use super::barrier;
use super::slots::{AllSlots, SLOTS, ThreadSlots};
use crate::sync::{AtomicPtr, Lock, Rank};

/// The slots of all threads.
pub(crate) static ALL_SLOTS: AllSlots = AllSlots::starting_with(AtomicPtr::new(core::ptr::null_mut()));

/// Which thread has which slots, for errors. Locked for moments, when a thread takes its slots and
/// when it gives them back.
static HOLDERS: Lock<Vec<Holder>> = Lock::new(Rank::ThreadSlots, Vec::new());

struct Holder {
    slots: &'static ThreadSlots,
    thread: Thread,
    /// The numbers that were there when the thread took the slots: reads that earlier threads have
    /// forgotten.
    left: [u64; SLOTS],
}

thread_local! {
    // Without a destructor, so that reading it is reading memory.
    static OWN: Cell<Option<&'static ThreadSlots>> = const { Cell::new(None) };
    static GIVE_BACK: GiveBack = const { GiveBack };
}

/// Gives the thread's slots back when the thread ends.
struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        if let Some(slots) = OWN.take() {
            // No wait here, least of all in a forked child. Without the lock an error names the
            // thread as if it had not ended.
            if let Some(mut holders) = HOLDERS.try_lock() {
                holders.retain(|holder| !core::ptr::eq(holder.slots, slots));
            }
            slots.give_back();
        }
    }
}

/// The calling thread's slots. There are none where the system lacks the barrier that slots rely
/// on, and none for destructors that run while the thread ends.
#[inline]
pub(crate) fn own_slots() -> Option<&'static ThreadSlots> {
    OWN.get().or_else(take)
}

#[cold]
fn take() -> Option<&'static ThreadSlots> {
    if !barrier::is_available() {
        return None;
    }
    GIVE_BACK.try_with(|_| ()).ok()?;
    let slots = ALL_SLOTS.take();
    let holder = Holder { slots, thread: std::thread::current(), left: slots.numbers() };
    let mut holders = HOLDERS.lock();
    holders.retain(|other| !core::ptr::eq(other.slots, slots));
    holders.push(holder);
    drop(holders);
    OWN.set(Some(slots));
    Some(slots)
}

/// The threads that read a stream, in words: one for each read that is announced in a slot.
pub(crate) fn users(number: u64) -> Vec<String> {
    let own = OWN.get();
    let holders = HOLDERS.lock();
    let user = |(slots, slot): (&'static ThreadSlots, usize)| {
        let holder = holders.iter().find(|holder| core::ptr::eq(holder.slots, slots));
        match holder {
            Some(holder) if holder.left.get(slot) != Some(&number) => {
                let is_own = own.is_some_and(|own| core::ptr::eq(own, slots));
                name(&holder.thread, is_own)
            }
            _ => "a thread that has ended".to_owned(),
        }
    };
    ALL_SLOTS.using(number).map(user).collect()
}

fn name(thread: &Thread, is_own: bool) -> String {
    match (is_own, thread.name()) {
        (true, _) => "this thread".to_owned(),
        (false, Some(name)) => format!("the thread `{}`", name.escape_debug()),
        (false, None) => format!("a thread without a name ({:?})", thread.id()),
    }
}
