//! The access of the legacy default streams.
//!
//! A call on a legacy stream invalidates the captures of all blocking streams of its context. So
//! its caller asks first whether one of them captures, and holds read access from the question to
//! the driver's answer; a thread that lets a blocking stream enter a capture has exclusive access.
//! A capture that ends in between does no harm.
//!
//! One access serves all contexts: it is held for moments, by calls that wait for nothing.

use std::sync::LazyLock;

use crate::access::{ALL_SLOTS, ExclusiveGuard, ReadGuard, StreamAccess, holders, own_slots};
use crate::context::{Context, unless_inside};
use crate::error::Result;

/// A number that no stream ever has.
const NUMBER: u64 = u64::MAX;

static ACCESS: LazyLock<StreamAccess> = LazyLock::new(|| StreamAccess::new(NUMBER));

/// Read access: no blocking stream enters a capture of this library while it is held. The caller
/// makes no call that waits meanwhile. `context` is the context of the call.
///
/// # Errors
/// `NOT_PERMITTED` inside a host function while a blocking stream is entering a capture.
pub(crate) fn read(context: &Context) -> Result<ReadGuard<'static>> {
    match ACCESS.read(own_slots()) {
        Some(access) => Ok(access),
        None => {
            let busy = || holders::changing("the legacy stream".to_owned());
            unless_inside(context, busy, || ACCESS.read_again(own_slots()))
        }
    }
}

/// Exclusive access: no thread is calling a legacy stream while it is held.
pub(crate) fn try_exclusive() -> Option<ExclusiveGuard<'static>> {
    ACCESS.try_exclusive(&ALL_SLOTS)
}
