//! Accounting: how much memory of each device is in use.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use crate::driver;
use crate::sync::lock;

#[derive(Debug, Default)]
struct Accounts {
    /// Bytes in use by device.
    used: HashMap<i32, u64>,
    /// Devices whose memory graphs have exhausted for good.
    exhausted: HashSet<i32>,
}

static ACCOUNTS: Mutex<Option<Accounts>> = Mutex::new(None);

fn with_accounts<R>(act: impl FnOnce(&mut Accounts) -> R) -> R {
    act(lock(&ACCOUNTS).get_or_insert_default())
}

/// Reserves bytes of a device; false if it does not have as many.
pub(super) fn try_reserve(device: i32, bytes: u64) -> bool {
    let total = driver::config().memory;
    with_accounts(|accounts| {
        let used = accounts.used.entry(device).or_default();
        let fits = used.checked_add(bytes).is_some_and(|sum| sum <= total);
        if fits {
            *used += bytes;
        }
        fits
    })
}

pub(super) fn release(device: i32, bytes: u64) {
    with_accounts(|accounts| {
        if let Some(used) = accounts.used.get_mut(&device) {
            *used = used.saturating_sub(bytes);
        }
    });
}

/// Leaves no memory of the device to anything but graphs, for the rest of the process.
pub(super) fn exhaust(device: i32) {
    with_accounts(|accounts| accounts.exhausted.insert(device));
}

/// The bytes of the device that calls can allocate.
pub(crate) fn free(device: i32) -> u64 {
    if with_accounts(|accounts| accounts.exhausted.contains(&device)) {
        return 0;
    }
    driver::config().memory.saturating_sub(used(device))
}

/// The bytes of the device in use.
fn used(device: i32) -> u64 {
    with_accounts(|accounts| accounts.used.get(&device).copied().unwrap_or(0))
}

/// Whether graphs have exhausted the device for good.
pub(super) fn is_exhausted(device: i32) -> bool {
    with_accounts(|accounts| accounts.exhausted.contains(&device))
}
