//! The owners that open captures keep.

use std::sync::Arc;

use crate::graph::Owner;
use crate::memory::Allocation;
use crate::module::Kernel;
use crate::sync::{Rank, SpinLock, process};

/// The owners of everything that the calls of each open capture use, by the capture's number.
static KEPT: SpinLock<Vec<(u64, Vec<Owner>)>> = SpinLock::new(Rank::CaptureOwners, Vec::new());

/// Makes room for one more capture, so that [`open`] allocates nothing.
pub(super) fn reserve() {
    KEPT.lock().reserve(1);
}

/// Enters a capture that begins.
pub(super) fn open(word: u64) {
    KEPT.lock().push((word, Vec::new()));
}

/// How many of the owners kept last are compared with a new one, so that an owner used again and
/// again is kept once.
const RECENT: usize = 8;

/// Lets `give` keep things for a capture that is not over.
#[inline]
pub(super) fn keep_for(word: u64, give: impl FnOnce(&mut Keeper<'_>)) {
    // In a forked child the table may be locked forever.
    if process::is_forked() {
        return;
    }
    // Not under the lock: `give` may be anybody's code.
    let mut taken = Taken { word, owners: take_for_now(word) };
    give(&mut Keeper { owners: &mut taken.owners });
}

/// The owners of a capture while a caller adds some.
struct Taken {
    word: u64,
    owners: Vec<Owner>,
}

fn take_for_now(word: u64) -> Vec<Owner> {
    let mut kept = KEPT.lock();
    let found = kept.iter_mut().find(|(other, _)| *other == word);
    found.map(|(_, owners)| core::mem::take(owners)).unwrap_or_default()
}

/// Puts the owners back, also after a panic, together with those that other threads have added in
/// the meantime.
impl Drop for Taken {
    fn drop(&mut self) {
        let mut kept = KEPT.lock();
        if let Some((_, owners)) = kept.iter_mut().find(|(other, _)| *other == self.word) {
            if !owners.is_empty() {
                self.owners.append(owners);
            }
            // The table's own list is empty by now: nothing is dropped under the lock.
            core::mem::swap(owners, &mut self.owners);
        }
    }
}

pub(super) fn take_kept(word: u64) -> Vec<Owner> {
    let mut kept = KEPT.lock();
    let index = kept.iter().position(|(other, _)| *other == word);
    index.map(|index| kept.swap_remove(index).1).unwrap_or_default()
}

/// Collects the owners of what a captured call uses; see
/// `Enqueue::keep_with`.
#[derive(Debug)]
pub struct Keeper<'k> {
    pub(super) owners: &'k mut Vec<Owner>,
}

impl Keeper<'_> {
    /// Keeps a kernel.
    #[inline]
    pub fn kernel(&mut self, kernel: &Kernel) {
        if !self.has_recently(|owner| matches!(owner, Owner::Kernel(kept) if kept == kernel)) {
            self.owners.push(Owner::Kernel(kernel.clone()));
        }
    }

    /// Keeps memory, unless the capture does so anyway.
    #[inline]
    pub fn allocation(&mut self, allocation: &Arc<Allocation>) {
        let is_it = |owner: &Owner| matches!(owner, Owner::Allocation(kept) if Arc::ptr_eq(kept, allocation));
        if !allocation.is_scratch() && !self.has_recently(is_it) {
            self.owners.push(Owner::Allocation(Arc::clone(allocation)));
        }
    }

    #[inline]
    fn has_recently(&self, is_it: impl FnMut(&Owner) -> bool) -> bool {
        self.owners.iter().rev().take(RECENT).any(is_it)
    }
}
