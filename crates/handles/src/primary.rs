//! Getting contexts: the primary one of a device, and contexts that exist already.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cuda_sys::{CUcontext, CUresult, Call};

use crate::callback;
use crate::context::Context;
use crate::device::{Device, checked, initialised};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::patience::{lock_patiently, try_lock};
use crate::process;
use crate::reaper;

/// Retained once each, and kept until the process ends: what is in a context may be dropped at any
/// time.
static PRIMARY: Mutex<Vec<Context>> = Mutex::new(Vec::new());

/// Held while one is retained. Not so the table, which a host function may want for which the
/// driver waits meanwhile.
static RETAINING: Mutex<()> = Mutex::new(());

fn primary() -> MutexGuard<'static, Vec<Context>> {
    PRIMARY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn known(device: Device) -> Option<Context> {
    primary().iter().find(|context| context.device() == device).cloned()
}

/// Whether it is the primary context of its device, got by [`Device::context`].
pub(crate) fn is_primary(context: &Context) -> bool {
    known(context.device()).is_some_and(|known| known.as_raw() == context.as_raw())
}

/// Lets nobody else retain one. Refused inside a host function if somebody does, as the driver
/// refuses it there.
fn retain_alone() -> Result<MutexGuard<'static, ()>> {
    match try_lock(&RETAINING) {
        Some(alone) => Ok(alone),
        None if callback::is_inside() => {
            let code = CUresult::CUDA_ERROR_NOT_PERMITTED;
            Err(Error::Driver { call: Call::cuDevicePrimaryCtxRetain, code })
        }
        None => lock_patiently("the primary context of a device", &RETAINING),
    }
}

impl Device {
    /// The device's primary context, the one that other CUDA code of the process uses as well.
    /// Every call gives the same one.
    ///
    /// Stands on `cuDevicePrimaryCtxRetain`, CUDA 7.0; called once per device. It is not released
    /// before the process ends.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuDevicePrimaryCtxRetain")]
    pub fn context(self) -> Result<Context> {
        initialised()?;
        if let Some(known) = known(self) {
            return Ok(known);
        }
        let _alone = retain_alone()?;
        // Another thread may have been faster.
        if let Some(known) = known(self) {
            return Ok(known);
        }
        let limits = Limits::of(self)?;
        let mut raw = core::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        let code = unsafe { self.driver().cuDevicePrimaryCtxRetain(&raw mut raw, self.as_raw()) };
        checked(Call::cuDevicePrimaryCtxRetain, code)?;
        reaper::set_starter(reaper::start_thread);
        let context = Context::wrap(raw, self, limits);
        context.make_known();
        primary().push(context.clone());
        Ok(context)
    }
}

impl Context {
    /// The context behind a raw handle: the owner that this library has for it, or else a handle
    /// that does not own it.
    ///
    /// # Safety
    /// `raw` is a context of the driver of this process, and it lives until everything made from
    /// the result is dropped and [`reaper::drain`] has returned.
    ///
    /// # Errors
    /// What the driver answers to the question for its device.
    #[doc(alias = "cuCtxGetDevice")]
    pub unsafe fn from_raw(raw: CUcontext) -> Result<Self> {
        process::ensure_not_forked()?;
        if let Some(known) = Self::find(raw) {
            return Ok(known);
        }
        let device = device_of(raw)?;
        reaper::set_starter(reaper::start_thread);
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
