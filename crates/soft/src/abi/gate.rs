//! What stands before every entry point, and the macro that writes one.

use cuda_sys::CUresult;

use crate::device::loss;
use crate::driver;
use crate::driver::result_code::{Answer, NOT_INITIALIZED, NOT_PERMITTED};
use crate::graph::capture::open_captures;
use crate::stream::callback;

/// Writes entry points of the driver. The word before `fn` says which gate the call passes:
/// `always` none, `init` works with a lost device, `live` not with that of the current context,
/// `owned` not with that of its stream or event; what is `guarded` open captures may forbid. Inside
/// callbacks only `always`, `initialised` and what ends in `in_callbacks` is permitted.
macro_rules! entries {
    ($($gate:ident fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            #[allow(non_snake_case, unused_unsafe, clippy::too_many_arguments)]
            pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> cuda_sys::CUresult {
                $crate::abi::gate::$gate(|| {
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
        loss::check_all()?;
        call()
    })
}

/// As [`live`], for a call that a stream or an event is given: what counts is whether the device of
/// that is lost.
pub(crate) fn owned(call: impl FnOnce() -> Answer) -> CUresult {
    init(|| {
        loss::check_all()?;
        call()
    })
}

/// A call that answers the code of the loss once the device of the current context is lost.
pub(crate) fn live(call: impl FnOnce() -> Answer) -> CUresult {
    init(|| {
        loss::check()?;
        call()
    })
}

/// As [`live`], but allowed in callbacks too.
pub(crate) fn live_in_callbacks(call: impl FnOnce() -> Answer) -> CUresult {
    initialised(|| {
        loss::check()?;
        call()
    })
}

/// As [`live`], for a call that open captures may forbid.
pub(crate) fn guarded(call: impl FnOnce() -> Answer) -> CUresult {
    live(|| {
        open_captures::check_call()?;
        call()
    })
}

/// As [`guarded`], but allowed in callbacks too.
pub(crate) fn guarded_in_callbacks(call: impl FnOnce() -> Answer) -> CUresult {
    initialised(|| {
        loss::check()?;
        open_captures::check_call()?;
        call()
    })
}

/// As [`init`], for a call that open captures may forbid.
pub(crate) fn guarded_init(call: impl FnOnce() -> Answer) -> CUresult {
    init(|| {
        open_captures::check_call()?;
        call()
    })
}
