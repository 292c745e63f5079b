//! The contexts of all devices, ready for sections that leave nothing behind.

use cuda_handles::{Context, Device};

use crate::driver::other_device;
use crate::promises::sweep::used_stream;

/// The contexts of all devices. In each the reaper has the stream that it keeps for ever.
///
/// # Panics
/// The driver refuses.
#[must_use]
pub fn all_contexts() -> Vec<Context> {
    let devices = Device::all().unwrap_or_else(|error| panic!("{error}"));
    devices.into_iter().map(warm).collect()
}

/// The context of [another device](other_device), in which the reaper has the stream that it keeps
/// for ever.
///
/// # Panics
/// There is no second device, or the driver refuses.
#[must_use]
pub fn other_context() -> Context {
    warm(other_device())
}

fn warm(device: Device) -> Context {
    let context = device.context().unwrap_or_else(|error| panic!("{error}"));
    drop(used_stream(&context));
    context
}
