//! A memory barrier with two unequal halves: the light one costs nothing, the heavy one makes every
//! thread of the process pass a full barrier.
//!
//! If one thread stores `a` and loads `b`, another thread stores `b` and loads `a`, and each passes
//! a barrier in between, then at least one of them sees the other's store. The two halves guarantee
//! this as two full barriers do: while [`heavy`] runs, every other thread passes a full barrier
//! somewhere in its program. If that is after the thread's store, the caller of [`heavy`] sees the
//! store; otherwise it is before the thread's load. [`light`] keeps the compiler from reordering
//! the two.

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

/// Whether the system has such a barrier. The first call prepares it; the answer never changes.
pub(crate) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(system::prepare)
}

/// The half for readers. Valid only where [`is_available`] returned true.
#[inline]
pub(crate) fn light() {
    compiler_fence(Ordering::SeqCst);
}

/// The half for writers. Does nothing where the system has no such barrier: no reader relies on it
/// there.
pub(crate) fn heavy() {
    if is_available() {
        system::barrier();
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use core::time::Duration;
    use std::sync::atomic::{Ordering, fence};

    /// Linux 4.14.
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call takes two numbers and touches no memory.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0) == 0 }
    }

    pub(crate) fn prepare() -> bool {
        membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED)
    }

    pub(crate) fn barrier() {
        if membarrier(PRIVATE_EXPEDITED) {
            return;
        }
        // The kernel is short of memory, or a filter of system calls was installed later. A barrier
        // waits until the stores of each core have left its buffer, which takes less than a
        // microsecond.
        fence(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(1));
        fence(Ordering::SeqCst);
    }
}

#[cfg(windows)]
mod system {
    // The system's own signature.
    #[link(name = "kernel32")]
    unsafe extern "system" {
        safe fn FlushProcessWriteBuffers();
    }

    pub(crate) fn prepare() -> bool {
        true
    }

    pub(crate) fn barrier() {
        FlushProcessWriteBuffers();
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
mod system {
    pub(crate) fn prepare() -> bool {
        false
    }

    pub(crate) fn barrier() {}
}
