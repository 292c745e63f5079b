//! The software driver as a library of its own, for programs that open a driver by its path:
//! `cargo build --release --package cuda-soft --example cuda`, then `CUDA_SYS_DRIVER=target/release/examples/libcuda.so`.
//! It exports the two symbols that cuda-sys looks for; all other calls are found through them.

use core::ffi::{c_char, c_int, c_void};

use cuda_sys::{CUdriverProcAddressQueryResult, CUresult, Version, cuuint64_t};

/// The look-up of all calls.
///
/// # Safety
/// As CUDA's documentation of `cuGetProcAddress` demands of its arguments.
// SAFETY: the name is the driver's; the library is opened in the place of the driver and not beside it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    driver_version: c_int,
    flags: cuuint64_t,
    symbol_found: *mut CUdriverProcAddressQueryResult,
) -> CUresult {
    // SAFETY: the caller's promise.
    unsafe { cuda_soft::get_proc_address(symbol, pfn, driver_version, flags, symbol_found) }
}

/// The version that the driver poses as.
///
/// # Safety
/// `version` is null or valid for a write.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> CUresult {
    type GetVersion = unsafe extern "C" fn(*mut c_int) -> CUresult;
    let mut found: *mut c_void = core::ptr::null_mut();
    let mut status = CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
    let since = Version::new(2, 2).as_raw();
    // SAFETY: the name is a C string and the out pointers are valid.
    let answer = unsafe {
        cuda_soft::get_proc_address(c"cuDriverGetVersion".as_ptr(), &raw mut found, since, 0, &raw mut status)
    };
    if !answer.is_success() || found.is_null() {
        return CUresult::CUDA_ERROR_NOT_FOUND;
    }
    // SAFETY: a call's pointer has the call's signature; the argument is the caller's promise.
    unsafe { core::mem::transmute::<*mut c_void, GetVersion>(found)(version) }
}
