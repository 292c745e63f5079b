#![doc = include_str!("../README.md")]

mod abi;
pub mod control;
mod device;
mod driver;
mod graph;
mod launch;
mod memory;
mod module;
mod null;
mod ptx;
mod stream;
mod sync;

pub use driver::checks::Check;
pub use driver::config::{Config, ConfigError};

/// The software driver as the driver of this process, with this configuration.
///
/// The configuration is applied when the loader is installed. A process has one driver, so the last
/// call before that counts. Installation fails if the configuration is impossible, such as one with
/// 2^32 devices.
#[must_use]
pub fn loader(config: Config) -> cuda_sys::Loader {
    if let Err(error) = config.check() {
        return cuda_sys::Loader::refused("cuda-soft", error);
    }
    driver::configure(config);
    // SAFETY: every pointer is a function of this crate with the signature of the generated table,
    // callable for ever.
    unsafe { cuda_sys::Loader::in_process("cuda-soft", abi::cuGetProcAddress) }
}

/// A driver that does nothing: every call returns success immediately, and calls that create
/// something return distinct handles. It serves to measure the overhead of a library above the
/// driver.
///
/// # Safety
/// Copies copy nothing and no work runs. Nobody may read host memory that a copy or a kernel would
/// have written, such as a vector that the library above fills by a copy.
#[must_use]
pub unsafe fn null_loader() -> cuda_sys::Loader {
    // SAFETY: as above; the functions write nothing but their out parameters, and the rest is the
    // caller's promise.
    unsafe { cuda_sys::Loader::in_process("cuda-soft (null)", null::cuGetProcAddress) }
}

/// The lookup of driver calls, for a library that replaces `libcuda`. Without a [`loader`] before
/// it, the configuration is read by [`Config::from_environment`].
///
/// # Safety
/// The arguments are valid as CUDA's documentation demands.
#[doc(alias = "cuGetProcAddress")]
pub unsafe extern "C" fn get_proc_address(
    symbol: *const core::ffi::c_char,
    pfn: *mut *mut core::ffi::c_void,
    driver_version: core::ffi::c_int,
    flags: cuda_sys::cuuint64_t,
    symbol_found: *mut cuda_sys::CUdriverProcAddressQueryResult,
) -> cuda_sys::CUresult {
    // SAFETY: the caller's promise.
    unsafe { abi::cuGetProcAddress(symbol, pfn, driver_version, flags, symbol_found) }
}
