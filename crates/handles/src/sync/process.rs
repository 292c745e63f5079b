//! Whether this process may still call the driver.

use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::{Error, Result};

const RUNNING: u8 = 0;
const FORKED: u8 = 1;
const EXITING: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(RUNNING);

/// Watches for `fork` and `exit`, from the first call on. Handlers of `exit` run last in, first
/// out: called after the driver was initialised, ours run before the driver's own.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only stores to a static.
        unsafe { libc::atexit(exiting) };
        #[cfg(unix)]
        // SAFETY: as above; a store to an atomic is safe between fork and exec.
        unsafe {
            libc::pthread_atfork(None, None, Some(forked))
        };
    });
}

pub(crate) extern "C" fn exiting() {
    // A forked child stays one: it must not touch locks that the fork left held, not even to exit.
    let _ = STATE.compare_exchange(RUNNING, EXITING, Ordering::AcqRel, Ordering::Acquire);
}

#[cfg(unix)]
extern "C" fn forked() {
    STATE.store(FORKED, Ordering::Release);
}

/// Whether the driver may be called at all: not in a forked child, not while the process exits.
#[inline]
pub(crate) fn is_running() -> bool {
    STATE.load(Ordering::Acquire) == RUNNING
}

/// Whether the process has begun to exit.
pub(crate) fn is_exiting() -> bool {
    STATE.load(Ordering::Acquire) == EXITING
}

/// Whether this is a forked child of a process that used the driver. It can call nothing of the
/// driver; drops do nothing there, and nothing of this library waits for a lock, which may have
/// been held by a thread that is not there.
#[inline]
#[must_use]
pub fn is_forked() -> bool {
    STATE.load(Ordering::Acquire) == FORKED
}

/// For functions that look into tables: in a forked child they may be locked forever.
pub(crate) fn ensure_not_forked() -> Result<()> {
    if is_forked() { Err(Error::Forked) } else { Ok(()) }
}
