//! Making events.

use cuda_sys::{CUevent_st, Call};

use crate::context::Context;
use crate::error::Result;
use crate::registry::Raw;

/// Creates an event in a context.
pub(crate) fn create_event(context: &Context, flags: u32) -> Result<Raw<CUevent_st>> {
    let _current = context.enter()?;
    let mut raw = core::ptr::null_mut();
    // SAFETY: the context is current and the out pointer valid.
    let code = unsafe { context.driver().cuEventCreate(&raw mut raw, flags) };
    context.check(Call::cuEventCreate, code)?;
    Ok(Raw::new(raw))
}
