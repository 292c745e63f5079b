//! What stands before every entry point, and the macro that writes one.

use cuda_sys::CUresult;

use crate::callback;
use crate::code::{Answer, INVALID_VALUE, NOT_INITIALIZED, NOT_PERMITTED};
use crate::{capture_mode, driver, fault};

/// Writes entry points of the driver. The word before `fn` says which gate the call passes:
/// `always` none, `init` works with a lost device, `live` not with that of the current context,
/// `owned` not with that of its stream or event; what is `guarded` open captures may forbid. Inside
/// callbacks only `always`, `initialised` and what ends in `in_callbacks` is permitted.
macro_rules! entries {
    ($($gate:ident fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            #[allow(non_snake_case, unused_unsafe, clippy::too_many_arguments)]
            pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> cuda_sys::CUresult {
                $crate::gate::$gate(|| {
                    // SAFETY: the caller keeps to the interface of the call.
                    unsafe { $body }
                })
            }
        )*
    };
}

fn finish(answer: Answer) -> CUresult {
    match answer {
        Ok(()) => CUresult::CUDA_SUCCESS,
        Err(code) => code,
    }
}

/// A call that always works.
pub(crate) fn always(call: impl FnOnce() -> Answer) -> CUresult {
    finish(call())
}

/// A call that needs an initialised driver and is not allowed in callbacks, but works with a lost
/// context.
pub(crate) fn init(call: impl FnOnce() -> Answer) -> CUresult {
    initialised(|| {
        refuse_in_callbacks()?;
        call()
    })
}

/// Most calls are not permitted in host functions and in destructors of user objects.
pub(crate) fn refuse_in_callbacks() -> Answer {
    if callback::inside() { Err(NOT_PERMITTED) } else { Ok(()) }
}

/// As [`init`], but allowed in callbacks too.
pub(crate) fn initialised(call: impl FnOnce() -> Answer) -> CUresult {
    if driver::is_initialised() { finish(call()) } else { NOT_INITIALIZED }
}

/// As [`owned`], but allowed in callbacks too.
pub(crate) fn owned_in_callbacks(call: impl FnOnce() -> Answer) -> CUresult {
    initialised(|| {
        fault::check_all()?;
        call()
    })
}

/// As [`live`], for a call that a stream or an event is given: what counts is whether the device of
/// that is lost.
pub(crate) fn owned(call: impl FnOnce() -> Answer) -> CUresult {
    init(|| {
        fault::check_all()?;
        call()
    })
}

/// A call that answers the code of the loss once the device of the current context is lost.
pub(crate) fn live(call: impl FnOnce() -> Answer) -> CUresult {
    init(|| {
        fault::check()?;
        call()
    })
}

/// As [`live`], but allowed in callbacks too.
pub(crate) fn live_in_callbacks(call: impl FnOnce() -> Answer) -> CUresult {
    initialised(|| {
        fault::check()?;
        call()
    })
}

/// As [`live`], for a call that open captures may forbid.
pub(crate) fn guarded(call: impl FnOnce() -> Answer) -> CUresult {
    live(|| {
        capture_mode::check_call()?;
        call()
    })
}

/// As [`guarded`], but allowed in callbacks too.
pub(crate) fn guarded_in_callbacks(call: impl FnOnce() -> Answer) -> CUresult {
    initialised(|| {
        fault::check()?;
        capture_mode::check_call()?;
        call()
    })
}

/// As [`init`], for a call that open captures may forbid.
pub(crate) fn guarded_init(call: impl FnOnce() -> Answer) -> CUresult {
    init(|| {
        capture_mode::check_call()?;
        call()
    })
}

/// Writes an out parameter; null is an invalid value.
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

/// Null is an invalid value, and so is what no compiler puts there.
fn placed<T>(pointer: *const T) -> Answer {
    if pointer.is_null() || !pointer.is_aligned() { Err(INVALID_VALUE) } else { Ok(()) }
}

/// What a pointer points to that may not be null.
///
/// # Safety
/// `pointer` is null, or valid and unchanged for `'a`.
pub(crate) unsafe fn given<'a, T>(pointer: *const T) -> Answer<&'a T> {
    placed(pointer)?;
    // SAFETY: not null, and so valid by the caller's promise.
    Ok(unsafe { &*pointer })
}

/// As [`given`], of what the call changes.
///
/// # Safety
/// `pointer` is null, or valid for `'a`, in which nobody else uses what it points to.
pub(crate) unsafe fn given_mut<'a, T>(pointer: *mut T) -> Answer<&'a mut T> {
    placed(pointer)?;
    // SAFETY: not null, and so valid by the caller's promise.
    Ok(unsafe { &mut *pointer })
}

/// The slice of an array argument; a null array with a count is an invalid value, and so is one
/// that no memory holds.
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
