//! Whether the calling code runs inside a host function, or a destructor that the driver runs.

use cuda_sys::{CUresult, Driver};

/// The driver's answer to a trivial call: `NOT_PERMITTED` inside a host function, and nowhere else.
pub(crate) fn ask(driver: &Driver) -> CUresult {
    let mut current = core::ptr::null_mut();
    // SAFETY: the out pointer is valid.
    unsafe { driver.cuCtxGetCurrent(&raw mut current) }
}

/// Whether the calling code runs inside a host function. False as long as there is no driver.
pub(crate) fn is_inside() -> bool {
    cuda_sys::installed().is_some_and(|driver| ask(driver) == CUresult::CUDA_ERROR_NOT_PERMITTED)
}
