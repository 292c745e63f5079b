//! External semaphores: counters in shared files.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use cuda_sys::{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUexternalSemaphoreHandleType,
};

use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED, OPERATING_SYSTEM};
use crate::memory::shared_file::{Mapping, PAGE, Purpose, SharedFile};
use crate::sync::lock;

/// The offset of the counter in the file.
const VALUE: usize = 32;

/// The counter behind a semaphore, shared between processes.
#[derive(Debug)]
pub(crate) struct SharedCounter {
    file: SharedFile,
    page: Mapping,
}

impl SharedCounter {
    pub(crate) fn create() -> io::Result<Self> {
        Self::over(SharedFile::create(Purpose::Semaphore, 0)?)
    }

    fn over(file: SharedFile) -> io::Result<Self> {
        let page = file.map(0, PAGE as usize)?;
        Ok(Self { file, page })
    }

    /// A descriptor of its own for the caller.
    pub(crate) fn export(&self) -> io::Result<OwnedFd> {
        // SAFETY: the descriptor was just made, and nobody else has it.
        self.file.export().map(|raw| unsafe { OwnedFd::from_raw_fd(raw) })
    }

    pub(crate) fn get(&self) -> &AtomicU64 {
        // SAFETY: inside the page and aligned; all processes access it by atomics.
        unsafe { AtomicU64::from_ptr(self.page.host().add(VALUE).cast()) }
    }
}

/// How a semaphore counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SemaphoreKind {
    /// Signalled or not. A wait takes the signal.
    Binary,
    /// A value that grows.
    Timeline,
}

/// An imported semaphore.
#[derive(Debug)]
pub(crate) struct Semaphore {
    word: SharedCounter,
    kind: SemaphoreKind,
    alive: AtomicBool,
}

/// The parameters of a signal as the user gave them.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct SignalParams(pub(crate) CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS);

/// The parameters of a wait as the user gave them.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct WaitParams(pub(crate) CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS);

// SAFETY: the pointers in the parameters are for semaphores of other kinds and never followed.
unsafe impl Send for SignalParams {}
// SAFETY: as above.
unsafe impl Sync for SignalParams {}
// SAFETY: as above.
unsafe impl Send for WaitParams {}
// SAFETY: as above.
unsafe impl Sync for WaitParams {}

impl SignalParams {
    fn value(&self) -> u64 {
        self.0.params.fence.value
    }
}

impl WaitParams {
    fn value(&self) -> u64 {
        self.0.params.fence.value
    }
}

impl std::fmt::Debug for SignalParams {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("SignalParams").field(&self.value()).finish()
    }
}

impl std::fmt::Debug for WaitParams {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("WaitParams").field(&self.value()).finish()
    }
}

static SEMAPHORES: Mutex<Slots<Arc<Semaphore>>> = Mutex::new(Slots::new(Kind::Semaphore));

fn semaphores() -> MutexGuard<'static, Slots<Arc<Semaphore>>> {
    lock(&SEMAPHORES)
}

/// Imports the semaphore behind a descriptor and takes ownership of the descriptor.
pub(crate) fn import(kind: CUexternalSemaphoreHandleType, descriptor: RawFd) -> Answer<u64> {
    type K = CUexternalSemaphoreHandleType;
    let kind = match kind {
        K::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD => SemaphoreKind::Binary,
        K::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD => SemaphoreKind::Timeline,
        _ if (1..=10).contains(&kind.0) => return Err(NOT_SUPPORTED),
        _ => return Err(INVALID_VALUE),
    };
    let file = SharedFile::from_descriptor(descriptor, Purpose::Semaphore).ok_or(OPERATING_SYSTEM)?;
    let word = SharedCounter::over(file).map_err(|_| OPERATING_SYSTEM)?;
    // SAFETY: the interface hands the descriptor over with a successful import.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    Ok(semaphores().insert(Arc::new(Semaphore { word, kind, alive: AtomicBool::new(true) })))
}

pub(crate) fn get(handle: u64) -> Answer<Arc<Semaphore>> {
    semaphores().get(handle).cloned().ok_or(INVALID_HANDLE)
}

/// `cuDestroyExternalSemaphore`.
pub(crate) fn destroy(handle: u64) -> Answer {
    let gone = semaphores().remove(handle).ok_or(INVALID_HANDLE)?;
    gone.alive.store(false, Ordering::Release);
    Ok(())
}

/// The number of live semaphores.
pub(crate) fn count() -> usize {
    semaphores().len()
}

impl Semaphore {
    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    pub(crate) fn signal(&self, params: &SignalParams) {
        let value = match self.kind {
            SemaphoreKind::Binary => 1,
            SemaphoreKind::Timeline => params.value(),
        };
        self.word.get().store(value, Ordering::SeqCst);
    }

    /// Whether it is signalled. A binary signal is consumed.
    pub(crate) fn try_wait(&self, params: &WaitParams) -> bool {
        let word = self.word.get();
        match self.kind {
            SemaphoreKind::Binary => word.compare_exchange(1, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok(),
            SemaphoreKind::Timeline => word.load(Ordering::SeqCst) >= params.value(),
        }
    }
}
