//! Getting contexts: the primary one of a device, which other CUDA code of the process uses as
//! well, and contexts that other code made.

use cuda_sys::{CUcontext, Call};

use crate::context::{Context, Device, Limits, checked, initialised, primary};
use crate::error::Result;
use crate::reclaim;
use crate::sync::process;

impl Device {
    /// The device's primary context, which other CUDA code of the process uses as well. Every call
    /// returns the same one.
    ///
    /// Calls `cuDevicePrimaryCtxRetain` (CUDA 7.0); called once per device. It is not released
    /// before the process ends.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuDevicePrimaryCtxRetain")]
    #[doc(alias = "cudaSetDevice")]
    #[doc(alias = "primary context")]
    pub fn context(self) -> Result<Context> {
        primary::retain(self, reclaim::prepare)
    }
}

impl Context {
    /// The context behind a raw handle: its owner, if this library knows one, or else a handle that
    /// does not own the context.
    ///
    /// # Safety
    /// `raw` is a context of the driver of this process, and it lives until everything made from
    /// the result is dropped and [`reaper::drain`](crate::reaper::drain) has returned.
    ///
    /// # Errors
    /// The driver refuses the call to the question for its device.
    #[doc(alias = "cuCtxGetDevice")]
    pub unsafe fn from_raw(raw: CUcontext) -> Result<Self> {
        process::ensure_not_forked()?;
        if let Some(known) = Self::find(raw) {
            return Ok(known);
        }
        let device = device_of(raw)?;
        reclaim::prepare();
        Ok(Self::wrap(raw, device, Limits::of(device)?).register_unless_known())
    }
}

/// Asks a context for its device.
fn device_of(raw: CUcontext) -> Result<Device> {
    let driver = initialised()?;
    let mut popped = core::ptr::null_mut();
    let mut ordinal = 0;
    // SAFETY: the caller's context is alive; all out pointers are valid, and what is pushed is
    // popped.
    unsafe {
        checked(Call::cuCtxPushCurrent, driver.cuCtxPushCurrent(raw))?;
        let code = driver.cuCtxGetDevice(&raw mut ordinal);
        checked(Call::cuCtxPopCurrent, driver.cuCtxPopCurrent(&raw mut popped))?;
        checked(Call::cuCtxGetDevice, code)?;
    }
    Device::with_raw(ordinal)
}
