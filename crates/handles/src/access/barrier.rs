//! A memory barrier of two unequal halves: the one that is run often costs nothing, the other makes
//! every thread of the process pass a full barrier.
//!
//! One thread stores `a` and reads `b`, another one stores `b` and reads `a`, each with a barrier
//! in between: then at least one of them sees the other's store. That holds for the two halves here
//! as it does for two full barriers: while [`heavy`] runs, every other thread passes a full barrier
//! somewhere in its program, either behind its own store, which [`heavy`]'s caller then sees, or in
//! front of its read. The compiler keeps the order of the two by [`light`].

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

/// Whether there is such a barrier here. It is made ready by the first call; the answer never
/// changes.
pub(crate) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(system::prepare)
}

/// The half for those who pass it often. Only where [`is_available`] says so.
#[inline]
pub(crate) fn light() {
    compiler_fence(Ordering::SeqCst);
}

/// The half for the one who passes it seldom. Does nothing where there is no such barrier, where
/// nobody relies on it.
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
        // SAFETY: the call takes two numbers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0) == 0 }
    }

    pub(crate) fn prepare() -> bool {
        membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED)
    }

    pub(crate) fn barrier() {
        if membarrier(PRIVATE_EXPEDITED) {
            return;
        }
        // Short of memory, or a filter of system calls that came later. What a barrier waits for is
        // that the stores of each core leave its buffer, which takes less than a microsecond.
        fence(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(1));
        fence(Ordering::SeqCst);
    }
}

#[cfg(windows)]
mod system {
    // The signature is that of the system.
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
