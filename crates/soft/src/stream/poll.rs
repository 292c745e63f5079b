//! Waiting for what nobody tells of: another stream, another process or the host changes a word.

use std::thread;
use std::time::Duration;

use crate::device::loss::{self, Loss};

/// Asks until the answer is yes, at short distances, or until the device is lost.
pub(crate) fn poll(device: i32, mut is_done: impl FnMut() -> Result<bool, Loss>) -> Result<(), Loss> {
    /// So often it is asked without a pause.
    const EAGER: u32 = 64;
    const PAUSE: Duration = Duration::from_micros(50);
    let mut asked = 0;
    while !is_done()? && !loss::is_lost(device) {
        asked += 1;
        if asked < EAGER { thread::yield_now() } else { thread::sleep(PAUSE) }
    }
    Ok(())
}
