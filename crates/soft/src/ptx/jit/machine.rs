//! Executable memory.

use std::ptr::NonNull;

use super::context::Context;

/// Machine code that can be called.
#[derive(Debug)]
pub(super) struct Machine {
    start: NonNull<libc::c_void>,
    len: usize,
}

// SAFETY: the mapping is never written after `new`, and freed by its only owner.
unsafe impl Send for Machine {}
// SAFETY: as above.
unsafe impl Sync for Machine {}

impl Machine {
    /// Maps `code` as executable memory, which is not writable. `None` if the system refuses.
    pub(super) fn new(code: &[u8]) -> Option<Machine> {
        let len = code.len().max(1);
        // SAFETY: a new private mapping at an address that the system picks.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let machine = Machine { start: NonNull::new(start)?, len };
        // SAFETY: the mapping is writable, new, and as long as the code.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), start.cast::<u8>(), code.len()) };
        // SAFETY: the mapping is owned. x86-64 keeps instruction caches coherent.
        let result = unsafe { libc::mprotect(start, len, libc::PROT_READ | libc::PROT_EXEC) };
        (result == 0).then_some(machine)
    }

    /// Runs the code.
    ///
    /// # Safety
    /// The code is a function of this signature, and the arguments are what it expects.
    #[inline(always)]
    pub(super) unsafe fn call(&self, context: *mut Context, registers: *mut u64, entry: u32) -> u32 {
        type Code = unsafe extern "C" fn(*mut Context, *mut u64, u32) -> u32;
        // SAFETY: the mapping holds a function of this signature, by the caller's promise.
        let code = unsafe { std::mem::transmute::<NonNull<libc::c_void>, Code>(self.start) };
        // SAFETY: the caller's promise.
        unsafe { code(context, registers, entry) }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned, and nobody runs its code: that borrows it.
        unsafe { libc::munmap(self.start.as_ptr(), self.len) };
    }
}
