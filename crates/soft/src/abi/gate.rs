//! The gates of entry points, and the macro that defines entry points.

use cuda_sys::CUresult;

use crate::device::loss;
use crate::driver::result_code::{Answer, NOT_INITIALIZED, NOT_PERMITTED, NOT_SUPPORTED};
use crate::driver::{self, explain};
use crate::graph::capture::open_captures;
use crate::stream::callback;

/// Defines entry points. The word before `fn` names the gate, one of the functions of this file:
///
/// | Gate | Before `cuInit` | With a lost device | Inside callbacks | Open captures |
/// | --- | --- | --- | --- | --- |
/// | `always` | works | works | works | ignored |
/// | `initialised` | refused | works | works | ignored |
/// | `init` | refused | works | refused | ignored |
/// | `owned`, `owned_in_callbacks` | refused | works until all are | refused, works | ignored |
/// | `live`, `live_in_callbacks` | refused | refused | refused, works | ignored |
/// | `guarded`, `guarded_in_callbacks` | refused | refused | refused, works | may refuse |
/// | `guarded_init` | refused | works | refused | may refuse |
macro_rules! entries {
    ($($gate:ident fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            #[allow(non_snake_case, unused_unsafe, clippy::too_many_arguments)]
            pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> cuda_sys::CUresult {
                $crate::driver::explain::during(stringify!($name), || {
                    $crate::abi::gate::$gate(|| {
                        // SAFETY: the caller keeps to the interface of the call.
                        unsafe { $body }
                    })
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

/// A call that this driver lacks.
pub(crate) fn missing(name: &'static str) -> CUresult {
    explain::during(name, || {
        init(|| {
            explain::because(|| "the software driver lacks this call".to_owned());
            Err(NOT_SUPPORTED)
        })
    })
}

/// No checks.
pub(crate) fn always(call: impl FnOnce() -> Answer) -> CUresult {
    finish(call())
}

/// The driver is initialised, and the thread is not inside a callback. The device may be lost.
pub(crate) fn init(call: impl FnOnce() -> Answer) -> CUresult {
    initialised(|| {
        refuse_in_callbacks()?;
        call()
    })
}

/// Refuses calls inside host functions and destructors of user objects.
pub(crate) fn refuse_in_callbacks() -> Answer {
    if callback::inside() { Err(NOT_PERMITTED) } else { Ok(()) }
}

/// As [`init`], but permitted inside callbacks.
pub(crate) fn initialised(call: impl FnOnce() -> Answer) -> CUresult {
    if driver::is_initialised() { finish(call()) } else { NOT_INITIALIZED }
}

/// As [`owned`], but permitted inside callbacks.
pub(crate) fn owned_in_callbacks(call: impl FnOnce() -> Answer) -> CUresult {
    initialised(|| {
        loss::check_all()?;
        call()
    })
}

/// As [`init`], for calls on a stream or event: the body checks whether its device is lost. Here
/// only the loss of all devices is checked.
pub(crate) fn owned(call: impl FnOnce() -> Answer) -> CUresult {
    init(|| {
        loss::check_all()?;
        call()
    })
}

/// As [`init`], and the device of the current context is not lost.
pub(crate) fn live(call: impl FnOnce() -> Answer) -> CUresult {
    init(|| {
        loss::check()?;
        call()
    })
}

/// As [`live`], but permitted inside callbacks.
pub(crate) fn live_in_callbacks(call: impl FnOnce() -> Answer) -> CUresult {
    initialised(|| {
        loss::check()?;
        call()
    })
}

/// As [`live`], and no open capture forbids the call.
pub(crate) fn guarded(call: impl FnOnce() -> Answer) -> CUresult {
    live(|| {
        open_captures::check_call()?;
        call()
    })
}

/// As [`guarded`], but permitted inside callbacks.
pub(crate) fn guarded_in_callbacks(call: impl FnOnce() -> Answer) -> CUresult {
    initialised(|| {
        loss::check()?;
        open_captures::check_call()?;
        call()
    })
}

/// As [`init`], and no open capture forbids the call.
pub(crate) fn guarded_init(call: impl FnOnce() -> Answer) -> CUresult {
    init(|| {
        open_captures::check_call()?;
        call()
    })
}
