//! The settings of kernels, which all handles of a kernel share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, LazyLock, Weak};

use crate::sync::{Lock, Rank};
use cuda_sys::CUdevice;

/// The settings of a kernel on a device, shared by all its handles. Handles of adopted libraries
/// are not found again, so there may be several.
pub(super) struct Settings {
    /// The dynamic shared memory that it may have now.
    pub(super) max_dynamic_shared: AtomicU32,
    /// cuda-launch's memo on the kernel's occupancy; 0 for none.
    pub(super) occupancy: AtomicU64,
}

/// The settings of kernels that have handles, by kernel and device.
static SETTINGS: LazyLock<Lock<AllSettings>> =
    LazyLock::new(|| Lock::new(Rank::KernelSettings, HashMap::new()));

/// By raw kernel and device.
type AllSettings = HashMap<(usize, CUdevice), Weak<Settings>>;

/// The settings of a kernel. Known settings are up to date, whatever was read meanwhile.
pub(super) fn of(key: (usize, CUdevice), max_dynamic_shared: u32) -> Arc<Settings> {
    let mut all = SETTINGS.lock();
    if let Some(known) = all.get(&key).and_then(Weak::upgrade) {
        return known;
    }
    let new = Arc::new(Settings {
        max_dynamic_shared: AtomicU32::new(max_dynamic_shared),
        occupancy: AtomicU64::new(0),
    });
    all.insert(key, Arc::downgrade(&new));
    new
}

/// Forgets the settings of a kernel if the handle that is being dropped is their last.
pub(super) fn forget(key: (usize, CUdevice), settings: &Arc<Settings>) {
    let mut all = SETTINGS.lock();
    // No thread gets another handle to them while the table is locked.
    if Arc::strong_count(settings) == 1 {
        all.remove(&key);
    }
}
