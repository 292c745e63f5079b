//! Checks that host memory is mapped.

use std::ffi::c_void;

use crate::driver::result_code::{Answer, INVALID_VALUE, OUT_OF_MEMORY};

/// Pages queried at a time.
#[cfg(target_os = "linux")]
const AT_ONCE: usize = 1 << 14;

/// Fails if a page of the range is not mapped: with `INVALID_VALUE` for the first page, with
/// `OUT_OF_MEMORY` for a later one, as on a GPU.
pub(crate) fn ensure(start: *const c_void, len: usize) -> Answer {
    if start.addr().checked_add(len).is_none() || !are_there(start.addr(), 1) {
        return Err(INVALID_VALUE);
    }
    if are_there(start.addr(), len) { Ok(()) } else { Err(OUT_OF_MEMORY) }
}

#[cfg(target_os = "linux")]
fn are_there(start: usize, len: usize) -> bool {
    // SAFETY: it takes a number.
    let Ok(page @ 1..) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) else { return true };
    let mut resident = vec![0_u8; AT_ONCE];
    let end = start.saturating_add(len);
    (start / page..end.div_ceil(page)).step_by(AT_ONCE).all(|first| {
        let pages = end.div_ceil(page).saturating_sub(first).min(AT_ONCE);
        let from = core::ptr::without_provenance_mut(first * page);
        // SAFETY: the addresses are asked about, not used; there is room for a byte of each page.
        unsafe { libc::mincore(from, pages * page, resident.as_mut_ptr()) == 0 }
    })
}

/// Assumed where the system has no such query.
#[cfg(not(target_os = "linux"))]
fn are_there(_: usize, _: usize) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn pages_are_there_or_not() {
        let memory = vec![0_u8; 3 << 20];
        let start: *const c_void = memory.as_ptr().cast();
        assert_eq!(ensure(start, memory.len()), Ok(()));
        assert_eq!(ensure(start.wrapping_byte_add(3), 5), Ok(()));
        assert_eq!(ensure(start, 1 << 46), Err(OUT_OF_MEMORY));
        assert_eq!(ensure(start, usize::MAX - 4096), Err(INVALID_VALUE));
        // SAFETY: a mapping of our own, which nobody reads.
        let gone = unsafe {
            let (kind, nowhere) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, core::ptr::null_mut());
            let gone = libc::mmap(nowhere, 4096, libc::PROT_NONE, kind, -1, 0);
            assert_eq!(libc::munmap(gone, 4096), 0);
            gone
        };
        assert_eq!(ensure(gone, 4096), Err(INVALID_VALUE));
        assert_eq!(ensure(core::ptr::without_provenance(usize::MAX - 8), 4), Err(INVALID_VALUE));
    }
}
