//! Fake drivers, each wrong in one way.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

use cuda_sys::{CUdriverProcAddressQueryResult, CUresult, Loader, cuuint64_t};

static VERSION: AtomicI32 = AtomicI32::new(0);
static LACKS: Mutex<Option<String>> = Mutex::new(None);

/// A driver of this version that finds every call but the one named. A version of 0 or less is not
/// told.
pub(crate) fn loader(version: i32, lacks: Option<&str>) -> Loader {
    VERSION.store(version, Ordering::SeqCst);
    *LACKS.lock().unwrap() = lacks.map(str::to_owned);
    // SAFETY: the only entry that these tests reach is `cuDriverGetVersion`, which has its
    // signature; no other is ever called.
    unsafe { Loader::in_process("fake driver", get_proc_address) }
}

unsafe extern "C" fn get_version(version: *mut c_int) -> CUresult {
    match VERSION.load(Ordering::SeqCst) {
        known if known > 0 => {
            // SAFETY: the caller's out pointer.
            unsafe { *version = known };
            CUresult::CUDA_SUCCESS
        }
        _ => CUresult::CUDA_ERROR_NOT_INITIALIZED,
    }
}

unsafe extern "C" fn never_called() -> CUresult {
    std::process::abort()
}

unsafe extern "C" fn get_proc_address(
    symbol: *const c_char,
    pointer: *mut *mut c_void,
    version: c_int,
    _flags: cuuint64_t,
    status: *mut CUdriverProcAddressQueryResult,
) -> CUresult {
    // SAFETY: the symbol is a C string.
    let symbol = unsafe { CStr::from_ptr(symbol) }.to_str().unwrap_or_default();
    let (found, answer) = if symbol == "cuDriverGetVersion" {
        (get_version as *mut c_void, CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS)
    } else if LACKS.lock().unwrap().as_deref() == Some(symbol) {
        (ptr::null_mut(), CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
    } else if version > VERSION.load(Ordering::SeqCst) {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    } else {
        (never_called as *mut c_void, CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS)
    };
    // SAFETY: the caller's out pointers.
    unsafe {
        *pointer = found;
        *status = answer;
    }
    CUresult::CUDA_SUCCESS
}
