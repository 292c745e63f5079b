//! Pointer arguments of the C interface: checked, read and written.

use crate::driver::result_code::{Answer, INVALID_VALUE};

/// Writes an out parameter. Null is an invalid value.
///
/// # Safety
/// `out` is null or valid for a write.
pub(crate) unsafe fn put<T>(out: *mut T, value: T) -> Answer {
    required(out)?;
    // SAFETY: not null, and so valid by the caller's promise, which says nothing of alignment.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Writes an out parameter that may be null.
///
/// # Safety
/// `out` is null or valid for a write.
pub(crate) unsafe fn put_if<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: as above.
        unsafe { out.write_unaligned(value) };
    }
}

/// Null is an invalid value.
pub(crate) fn required<T>(pointer: *const T) -> Answer {
    if pointer.is_null() { Err(INVALID_VALUE) } else { Ok(()) }
}

/// Null and misaligned pointers are invalid values.
fn placed<T>(pointer: *const T) -> Answer {
    if pointer.is_null() || !pointer.is_aligned() { Err(INVALID_VALUE) } else { Ok(()) }
}

/// The target of a pointer that may not be null.
///
/// # Safety
/// `pointer` is null, or valid and unchanged for `'a`.
pub(crate) unsafe fn given<'a, T>(pointer: *const T) -> Answer<&'a T> {
    placed(pointer)?;
    // SAFETY: not null, and so valid by the caller's promise.
    Ok(unsafe { &*pointer })
}

/// As [`given`], for a target that the call changes.
///
/// # Safety
/// `pointer` is null, or valid and not used otherwise for `'a`.
pub(crate) unsafe fn given_mut<'a, T>(pointer: *mut T) -> Answer<&'a mut T> {
    placed(pointer)?;
    // SAFETY: not null, and so valid by the caller's promise.
    Ok(unsafe { &mut *pointer })
}

/// The slice of an array argument. A null array with a count above 0 and a count that exceeds the
/// address space are invalid values.
///
/// # Safety
/// `array` is null or points to `count` elements that stay unchanged for `'a`.
pub(crate) unsafe fn slice<'a, T>(array: *const T, count: usize) -> Answer<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    placed(array)?;
    let bytes = count.checked_mul(size_of::<T>()).filter(|bytes| *bytes <= isize::MAX as usize);
    if bytes.and_then(|bytes| array.addr().checked_add(bytes)).is_none() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, aligned and of a size that memory can have, and so valid by the caller's
    // promise.
    Ok(unsafe { core::slice::from_raw_parts(array, count) })
}
