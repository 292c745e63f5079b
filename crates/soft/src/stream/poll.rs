//! Polling for changes without a notification, by other streams, processes or the host.

use std::thread;
use std::time::Duration;

use crate::device::loss::{self, Loss};

/// Polls at short intervals until `is_done` returns true or the device is lost.
pub(crate) fn poll(device: i32, mut is_done: impl FnMut() -> Result<bool, Loss>) -> Result<(), Loss> {
    /// The polls before the first pause.
    const EAGER: u32 = 64;
    const PAUSE: Duration = Duration::from_micros(50);
    let mut asked = 0;
    while !is_done()? && !loss::is_lost(device) {
        asked += 1;
        if asked < EAGER { thread::yield_now() } else { thread::sleep(PAUSE) }
    }
    Ok(())
}
