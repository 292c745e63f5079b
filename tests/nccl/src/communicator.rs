//! Communicators: one for each device of a process.

use core::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_handles::capture_mode::relaxed;
use cuda_handles::{Context, UserObject, is_forked, reaper};

use crate::api::RawCommunicator;
use crate::error::{Error, Result};
use crate::nccl::Nccl;

/// The place of one device among those that work together. Clones share it.
///
/// The last clone, whether the program or a graph has it, ends all communicators that were made
/// with it, on the thread of the [reaper](cuda_handles::reaper). NCCL calls the driver there, and
/// waits: neither is possible where a drop may run, on the driver's thread or in a capture. Until
/// then NCCL may wait for graphs that have its kernels, so each of those has a clone.
#[derive(Clone)]
pub struct Communicator {
    clique: Arc<Clique>,
    rank: usize,
}

/// The sets of communicators that nothing holds any more, and that have not ended yet.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// Waits until all communicators have ended that nothing holds any more: some hundred milliseconds
/// for NCCL. For the end of a program, which may not exit while another thread is in NCCL. Not for
/// host functions.
pub fn settle() {
    while ENDING.load(Ordering::Acquire) > 0 {
        reaper::drain();
        std::thread::yield_now();
    }
}

/// All communicators that were made together.
pub(crate) struct Clique {
    pub(crate) nccl: Nccl,
    pub(crate) contexts: Vec<Context>,
    /// For each rank, the ranks whose kernels may use its memory directly.
    neighbours: Vec<Vec<usize>>,
    raw: Raw,
    broken: Arc<OnceLock<Error>>,
    is_dropped: Arc<AtomicBool>,
    /// Held over a group: NCCL's communicators are for one thread at a time.
    turn: Mutex<()>,
    /// Its value ends the communicators, once the reaper drops it.
    _end: UserObject,
}

/// The communicators, by rank.
#[derive(Clone)]
struct Raw(Vec<RawCommunicator>);

// SAFETY: a communicator belongs to no thread. Calls are made one at a time.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

/// Ends communicators when it is dropped.
struct Ending {
    nccl: Nccl,
    contexts: Vec<Context>,
    raw: Raw,
    broken: Arc<OnceLock<Error>>,
    /// Nothing holds the communicators any more.
    is_dropped: Arc<AtomicBool>,
}

impl Communicator {
    /// A communicator for each of these contexts, in their order: the primary contexts of different
    /// devices. May wait for the devices, and takes some seconds with NCCL.
    ///
    /// Lets the contexts use each other's plain memory ([`Context::enable_peer_access`]), as NCCL
    /// does, where the devices can.
    ///
    /// Calls `ncclCommInitAll`.
    ///
    /// # Errors
    /// [`Error::Device`]: a context is not the primary one, or two are of one device.
    /// [`Error::Refused`]: NCCL refuses the call. [`Error::Handles`]: a context is lost, this is a
    /// host function, or the driver refuses a call.
    #[doc(alias = "ncclCommInitAll")]
    pub fn all(nccl: &Nccl, contexts: &[&Context]) -> Result<Vec<Self>> {
        let Some(first) = contexts.first() else { return Ok(Vec::new()) };
        let devices = devices(contexts)?;
        let neighbours = let_use_each_other(contexts)?;
        let mut raw = vec![core::ptr::null_mut(); contexts.len()];
        let status = first.with_current(|| {
            let _mode = relaxed(first.driver());
            // SAFETY: both arrays have an element for each device.
            unsafe { (nccl.api().init_all)(raw.as_mut_ptr(), devices.len() as i32, devices.as_ptr()) }
        })?;
        nccl.check("ncclCommInitAll", status, core::ptr::null_mut())?;
        let (raw, broken, is_dropped) = (Raw(raw), Arc::default(), Arc::default());
        let contexts: Vec<Context> = contexts.iter().copied().cloned().collect();
        let ending = Ending {
            nccl: nccl.clone(),
            contexts: contexts.clone(),
            raw: raw.clone(),
            broken: Arc::clone(&broken),
            is_dropped: Arc::clone(&is_dropped),
        };
        // If this fails, the communicators end here.
        let end = UserObject::new(first, Box::new(ending))?;
        let count = contexts.len();
        let (nccl, turn) = (nccl.clone(), Mutex::new(()));
        let clique =
            Arc::new(Clique { nccl, contexts, neighbours, raw, broken, is_dropped, turn, _end: end });
        Ok((0..count).map(|rank| Self { clique: Arc::clone(&clique), rank }).collect())
    }

    /// Its number among those that were made together.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many were made together.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.clique.contexts.len()
    }

    /// The context that it was made for.
    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        self.clique.contexts.get(self.rank)
    }

    /// NCCL's own handle, for calls of one's own.
    #[must_use]
    pub fn as_raw(&self) -> RawCommunicator {
        self.clique.raw(self.rank)
    }

    pub(crate) fn clique(&self) -> &Arc<Clique> {
        &self.clique
    }
}

impl Clique {
    pub(crate) fn raw(&self, rank: usize) -> RawCommunicator {
        self.raw.0.get(rank).copied().unwrap_or(core::ptr::null_mut())
    }

    /// The contexts of other ranks whose kernels may use memory of this one directly.
    pub(crate) fn neighbours(&self, rank: usize) -> impl Iterator<Item = &Context> {
        let numbers = self.neighbours.get(rank).map_or(&[][..], Vec::as_slice);
        numbers.iter().filter_map(|number| self.contexts.get(*number))
    }

    /// The right to make calls of these communicators.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        // Nothing is protected but the order of the calls.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error after a group that has failed: NCCL does not say what became of its calls.
    pub(crate) fn ensure_whole(&self) -> Result<()> {
        match self.broken.get() {
            Some(why) => Err(Error::Broken { why: why.to_string() }),
            None => Ok(()),
        }
    }

    pub(crate) fn note_failure(&self, why: &Error) {
        let _first_one_stays = self.broken.set(why.clone());
    }
}

/// The numbers of the devices, as CUDA's runtime has them.
fn devices(contexts: &[&Context]) -> Result<Vec<i32>> {
    let mut devices = Vec::with_capacity(contexts.len());
    for context in contexts {
        let device = context.device();
        let refused = |why| Err(Error::Device { device: device.ordinal(), why });
        if !device.context()?.is_same(context) {
            return refused("NCCL uses the device's primary context, and the given one is another");
        }
        let ordinal = device.ordinal() as i32;
        if devices.contains(&ordinal) {
            return refused("another one is of the same device");
        }
        devices.push(ordinal);
    }
    Ok(devices)
}

/// Lets the contexts use each other's memory where their devices can. Returns for each one which
/// others use its memory.
fn let_use_each_other(contexts: &[&Context]) -> Result<Vec<Vec<usize>>> {
    let mut neighbours = vec![Vec::new(); contexts.len()];
    for (number, (owner, users)) in contexts.iter().zip(&mut neighbours).enumerate() {
        for (other, user) in contexts.iter().enumerate() {
            if other != number && user.device().can_access(owner.device())? {
                user.enable_peer_access(owner)?;
                users.push(other);
            }
        }
    }
    Ok(neighbours)
}

impl Drop for Clique {
    fn drop(&mut self) {
        ENDING.fetch_add(1, Ordering::AcqRel);
        self.is_dropped.store(true, Ordering::Release);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.end();
        // Not if they ended where they were to be made.
        if self.is_dropped.load(Ordering::Acquire) {
            ENDING.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Ending {
    /// A failure is left to NCCL: nothing uses the communicators any more.
    fn end(&mut self) {
        let Some(first) = self.contexts.first() else { return };
        let is_lost = self.contexts.iter().any(|context| context.lost().is_some());
        if is_lost || is_forked() {
            return;
        }
        // Calls of a group that failed may never end, and `ncclCommDestroy` would wait for them.
        let end = if self.broken.get().is_some() { self.nccl.api().abort } else { self.nccl.api().destroy };
        let _refused = first.with_current(|| {
            let _mode = relaxed(first.driver());
            for raw in self.raw.0.drain(..).filter(|raw| !raw.is_null()) {
                // SAFETY: the communicator is live, and nobody else has it any more.
                let _left_to_nccl = unsafe { end(raw) };
            }
        });
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Communicator")
            .field("rank", &self.rank)
            .field("ranks", &self.ranks())
            .field("nccl", &self.clique.nccl)
            .finish()
    }
}
