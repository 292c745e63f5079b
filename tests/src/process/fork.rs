//! A forked child of the test.

use crate::poll::{SOON, until};

/// Runs `work` in a forked child and returns its result, from 0 to 255. The test fails if the child
/// crashes or hangs.
///
/// # Safety
/// Only the calling thread exists in the child: `work` waits for no lock that another thread may
/// have held.
pub unsafe fn in_forked_child(work: impl FnOnce() -> u8) -> u8 {
    // SAFETY: the child runs `work`, as the caller promises fit for it, and ends with `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "the process cannot fork");
    if child == 0 {
        let code = work();
        // SAFETY: ends this process without running what belongs to the parent.
        unsafe { libc::_exit(i32::from(code)) };
    }
    let mut status = 0;
    let ended = until(SOON, || {
        // SAFETY: the child is ours and the out pointer is valid.
        unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) == child }
    });
    if !ended {
        // SAFETY: the child is ours.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    assert!(ended, "the child hangs");
    assert!(libc::WIFEXITED(status), "the child crashed: status {status:#x}");
    u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX)
}
