//! The meaning of the null stream: the legacy default stream, or the calling thread's own one.
//!
//! Programs that are compiled with default streams for each thread call other entries of the
//! driver. With `CUDA_TEST_DEFAULT_STREAM=per-thread` the driver under test is looked up as they
//! look it up.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::forget;
use std::sync::OnceLock;

use cuda_sys::{
    CUdriverProcAddress_flags, CUdriverProcAddressQueryResult, CUresult, GetProcAddress, Loader, cuuint64_t,
};

const VARIABLE: &str = "CUDA_TEST_DEFAULT_STREAM";

/// The version that brought the first entries for such programs.
const FIRST: c_int = 7000;

static DRIVER: OnceLock<GetProcAddress> = OnceLock::new();

/// Whether the null stream is the calling thread's own stream in this run.
///
/// # Panics
/// The environment variable `CUDA_TEST_DEFAULT_STREAM` is neither `legacy` nor `per-thread`.
#[must_use]
pub fn null_stream_is_per_thread() -> bool {
    match std::env::var(VARIABLE).as_deref() {
        Err(_) | Ok("" | "legacy") => false,
        Ok("per-thread") => true,
        Ok(other) => panic!("{VARIABLE} is {other}, and not legacy or per-thread"),
    }
}

/// The software driver with the entries of such a program. It is configured before.
pub(super) fn soft() -> Loader {
    per_thread("cuda-soft", cuda_soft::get_proc_address)
}

/// A driver library with the entries of such a program.
///
/// # Panics
/// The library cannot be opened, or is no driver.
pub(super) fn file(path: &str) -> Loader {
    // SAFETY: whoever chose the library names a driver.
    let library = unsafe { libloading::Library::new(path) };
    let library = library.unwrap_or_else(|error| panic!("the driver under test, {path}: {error}"));
    // SAFETY: this name has had this one layout in every driver since 12.0.
    let look_up = unsafe { library.get::<GetProcAddress>("cuGetProcAddress_v2") };
    let look_up = *look_up.unwrap_or_else(|error| panic!("{path} is no CUDA driver: {error}"));
    forget(library);
    per_thread(path, look_up)
}

fn per_thread(name: &str, look_up: GetProcAddress) -> Loader {
    let known = *DRIVER.get_or_init(|| look_up);
    assert!(core::ptr::fn_addr_eq(known, look_up), "a process has one driver");
    // SAFETY: the entries have the signatures of those for the legacy default stream, and do the
    // same on all other streams.
    unsafe { Loader::in_process(name, find) }
}

/// The look-up of a call as programs with default streams for each thread make it.
unsafe extern "C" fn find(
    symbol: *const c_char,
    out: *mut *mut c_void,
    version: c_int,
    _: cuuint64_t,
    status: *mut CUdriverProcAddressQueryResult,
) -> CUresult {
    let Some(look_up) = DRIVER.get() else { return CUresult::CUDA_ERROR_NOT_INITIALIZED };
    // SAFETY: the caller gives a C string.
    let is_older = version < FIRST && has_variant(unsafe { CStr::from_ptr(symbol) });
    let version = if is_older { FIRST } else { version };
    let flags = CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    // SAFETY: the caller's promise.
    unsafe { look_up(symbol, out, version, flags.0.into(), status) }
}

macro_rules! symbols {
    ($($export:ident $symbol:literal $since:literal ($($arg:ident: $ty:ty),*);)*) => { [$($symbol),*] };
}

/// Whether a call has entries of its own for such programs. None of these has changed its layout
/// between the version of its plain entry and the first version of these.
fn has_variant(symbol: &CStr) -> bool {
    let symbols: [&CStr; _] = cuda_sys::for_each_per_thread_export!(symbols);
    symbols.contains(&symbol)
}
