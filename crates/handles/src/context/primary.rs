//! The primary contexts that this process has retained.

use cuda_sys::{CUresult, Call};

use super::busy::lock_patiently;
use super::device::{Device, checked, initialised};
use super::handle::Context;
use super::in_host_function;
use super::limits::Limits;
use crate::error::{Error, Result};
use crate::sync::{Lock, LockGuard, Rank};

/// The retained contexts. They are kept until the process ends, since objects in a context may be
/// dropped at any time.
static PRIMARY: Lock<Vec<Context>> = Lock::new(Rank::PrimaryContexts, Vec::new());

/// Held while a context is retained. The table is not: a host function may need it while the driver
/// waits for that function.
static RETAINING: Lock<()> = Lock::new(Rank::PrimaryContext, ());

fn primary() -> LockGuard<'static, Vec<Context>> {
    PRIMARY.lock()
}

fn known(device: Device) -> Option<Context> {
    primary().iter().find(|context| context.device() == device).cloned()
}

/// Whether it is the primary context of its device, got by [`Device::context`].
pub(crate) fn is_primary(context: &Context) -> bool {
    known(context.device()).is_some_and(|known| known.as_raw() == context.as_raw())
}

/// Keeps other threads from retaining a context. Inside a host function it is refused if another
/// thread does, as the driver refuses the call there.
fn retain_alone() -> Result<LockGuard<'static, ()>> {
    match RETAINING.try_in_order() {
        Some(alone) => Ok(alone),
        None if in_host_function::is_inside() => {
            let code = CUresult::CUDA_ERROR_NOT_PERMITTED;
            Err(Error::Driver { call: Call::cuDevicePrimaryCtxRetain, code })
        }
        None => lock_patiently("the primary context of a device", &RETAINING),
    }
}

/// The primary context of a device, retained by the first call. `made` runs before others find it.
pub(crate) fn retain(device: Device, made: impl FnOnce()) -> Result<Context> {
    initialised()?;
    if let Some(known) = known(device) {
        return Ok(known);
    }
    let _alone = retain_alone()?;
    // Another thread may have been faster.
    if let Some(known) = known(device) {
        return Ok(known);
    }
    let limits = Limits::of(device)?;
    let mut raw = core::ptr::null_mut();
    // SAFETY: the out pointer is valid.
    let code = unsafe { device.driver().cuDevicePrimaryCtxRetain(&raw mut raw, device.as_raw()) };
    checked(Call::cuDevicePrimaryCtxRetain, code)?;
    made();
    let context = Context::wrap(raw, device, limits);
    context.make_known();
    primary().push(context.clone());
    Ok(context)
}
