//! The software driver as a library of its own, for programs that open a driver by its path or by
//! its name: `cargo xtask soft-lib --out FOLDER`. It exports the symbols of a driver library, each
//! in the layout that this symbol has there: `cuMemcpyHtoD_v2`, and `cuMemcpyHtoD_v2_ptds` for
//! programs whose default stream is the thread's own.

use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use std::sync::OnceLock;

use cuda_sys::{CUdriverProcAddressQueryResult, CUresult, cuuint64_t};

/// The address of a call in the layout of a version, or null if the driver poses as an older one.
fn find(symbol: &CStr, since: c_int, flags: cuuint64_t) -> usize {
    let mut found: *mut c_void = core::ptr::null_mut();
    let mut status = CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
    // SAFETY: the name is a C string and the out pointers are valid.
    unsafe { cuda_soft::get_proc_address(symbol.as_ptr(), &raw mut found, since, flags, &raw mut status) };
    found.expose_provenance()
}

macro_rules! define {
    ($flags:literal $($name:ident $symbol:literal $since:literal ($($arg:ident: $ty:ty),*);)*) => {
        $(
            /// The driver's call.
            ///
            /// # Safety
            /// As CUDA's documentation of the call demands of its arguments.
            // SAFETY: the name is the driver's; the library is opened in the place of the driver
            // and not beside it.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, clippy::too_many_arguments)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> CUresult {
                type Entry = unsafe extern "C" fn($($ty),*) -> CUresult;
                static FOUND: OnceLock<usize> = OnceLock::new();
                match *FOUND.get_or_init(|| find($symbol, $since, $flags)) {
                    0 => CUresult::CUDA_ERROR_NOT_FOUND,
                    address => {
                        let pointer: *mut c_void = core::ptr::with_exposed_provenance_mut(address);
                        // SAFETY: a call's pointer has the signature of the layout that was asked
                        // for; the arguments are the caller's promise.
                        unsafe { transmute::<*mut c_void, Entry>(pointer)($($arg),*) }
                    }
                }
            }
        )*
    };
}

macro_rules! export {
    ($($rows:tt)*) => { define! { 0 $($rows)* } };
}

macro_rules! export_per_thread {
    ($($rows:tt)*) => { define! { 2 $($rows)* } };
}

cuda_sys::for_each_export!(export);
cuda_sys::for_each_per_thread_export!(export_per_thread);
