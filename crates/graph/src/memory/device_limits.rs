//! The total memory of devices, which limits allocation nodes.

use cuda_handles::internal::{Lock, Rank};
use cuda_handles::{Context, Device};

use crate::alloc_options::{AllocOptions, AllocPlace};
use crate::error::{Error, MemoryError, Result};

/// Totals queried so far. They do not change, and adding an allocation node is to cost one call.
static TOTALS: Lock<Vec<(Device, usize)>> = Lock::new(Rank::DeviceLimits, Vec::new());

impl AllocOptions {
    /// Refuses an allocation node of more memory than its device has: a launch would keep all
    /// memory of the device reserved until the process ends.
    pub(crate) fn ensure_room(&self, context: &Context, bytes: usize) -> Result<()> {
        let device = match self.place() {
            AllocPlace::Here => context.device(),
            AllocPlace::Device(device) => device,
            AllocPlace::Host | AllocPlace::Managed => return Ok(()),
        };
        context.ensure_usable()?;
        let total = total(device)?;
        let device = device.ordinal();
        if bytes > total {
            Err(Error::Memory(MemoryError::LargerThanDevice { bytes, device, total }))
        } else {
            Ok(())
        }
    }
}

fn total(device: Device) -> Result<usize> {
    let find =
        |known: &[(Device, usize)]| known.iter().find(|(one, _)| *one == device).map(|(_, total)| *total);
    if let Some(total) = find(&TOTALS.lock()) {
        return Ok(total);
    }
    // Queried without the lock.
    let total = device.total_memory()?;
    let mut known = TOTALS.lock();
    if find(&known).is_none() {
        known.push((device, total));
    }
    Ok(total)
}
