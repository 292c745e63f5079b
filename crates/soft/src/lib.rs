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

pub use driver::config::{Config, ConfigError};

/// The software driver as the process's driver, posing as `config` says.
///
/// The configuration is applied when the loader is installed; a process has one driver, so the last
/// call before that counts. Where a driver cannot be what it says, such as one with 2^32 devices,
/// the installation fails and says so.
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

/// A driver that does nothing: every call answers success at once, and calls that create something
/// give out distinct handles. With it the cost of a library above the driver is measured.
///
/// # Safety
/// A copy that it says is done has copied nothing, and no work has run: nobody reads memory of the
/// host that a copy or a kernel was to write, such as a vector that the library above makes of what
/// it has read.
#[must_use]
pub unsafe fn null_loader() -> cuda_sys::Loader {
    // SAFETY: as above; the functions write nothing but their out parameters, and the rest is the
    // caller's promise.
    unsafe { cuda_sys::Loader::in_process("cuda-soft (null)", null::cuGetProcAddress) }
}

/// The driver's look-up of its calls, by which everything else is reached: for a library that
/// stands in the place of `libcuda`. Without a [`loader`] before it, the configuration is that of
/// [`Config::from_environment`].
///
/// # Safety
/// As CUDA's documentation of the call demands of its arguments.
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
