//! Whether the calling code runs inside a host function, or a destructor that the driver runs.

use cuda_sys::{CUresult, Driver};

/// What the driver answers to something small: `NOT_PERMITTED` in there, and nowhere else.
pub(crate) fn ask(driver: &Driver) -> CUresult {
    let mut current = core::ptr::null_mut();
    // SAFETY: the out pointer is valid.
    unsafe { driver.cuCtxGetCurrent(&raw mut current) }
}

/// Whether it does. False as long as there is no driver.
pub(crate) fn is_inside() -> bool {
    cuda_sys::installed().is_some_and(|driver| ask(driver) == CUresult::CUDA_ERROR_NOT_PERMITTED)
}
