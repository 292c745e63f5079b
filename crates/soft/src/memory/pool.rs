//! Memory pools: the source of stream-ordered allocations, and their attributes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::device::context;
use crate::driver;
use crate::driver::abort::crash;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, INVALID_DEVICE, INVALID_VALUE, OPERATING_SYSTEM, OUT_OF_MEMORY};
use crate::memory::shared_file::{Purpose, SharedFile};
use crate::sync::lock;

/// Pools reserve memory in multiples of this.
pub(crate) const STEP: u64 = 32 << 20;

/// The attributes that users can set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) follow_events: bool,
    pub(crate) opportunistic: bool,
    pub(crate) internal: bool,
    pub(crate) threshold: u64,
}

#[derive(Debug)]
struct Figures {
    settings: Settings,
    used: u64,
    used_high: u64,
    reserved: u64,
    reserved_high: u64,
    /// The number of its allocations, imported ones included.
    held: u64,
    /// The number of frees queued in some stream.
    freeing: u64,
}

/// A pool.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) handle: u64,
    pub(crate) device: i32,
    max: u64,
    /// The file with its memory, if it can be shared with other processes.
    file: Option<Arc<SharedFile>>,
    /// It was imported from another process. Nothing can be allocated from it.
    is_imported: bool,
    /// It was destroyed and stays until its memory is freed, so that its handle is not reused
    /// before.
    is_destroyed: AtomicBool,
    figures: Mutex<Figures>,
    /// The access that other devices have to its memory.
    access: Mutex<HashMap<i32, u32>>,
}

/// Read and write access, which a pool's own device always has.
pub(crate) const READ_WRITE: u32 = 3;

#[derive(Debug)]
struct Pools {
    all: Slots<Arc<Pool>>,
    /// The default and the current pool of each device.
    devices: Vec<(u64, u64)>,
}

static POOLS: Mutex<Pools> = Mutex::new(Pools { all: Slots::new(Kind::Pool), devices: Vec::new() });

fn make(handle: u64, device: i32, max: u64, file: Option<Arc<SharedFile>>, is_imported: bool) -> Arc<Pool> {
    let settings = Settings { follow_events: true, opportunistic: true, internal: true, threshold: 0 };
    let figures =
        Figures { settings, used: 0, used_high: 0, reserved: 0, reserved_high: 0, held: 0, freeing: 0 };
    let (figures, is_destroyed) = (Mutex::new(figures), AtomicBool::new(false));
    Arc::new(Pool { handle, device, max, file, is_imported, is_destroyed, figures, access: Mutex::default() })
}

fn pools() -> MutexGuard<'static, Pools> {
    let mut pools = lock(&POOLS);
    if pools.devices.is_empty() {
        for device in 0..driver::config().devices {
            let device = i32::try_from(device).unwrap_or(i32::MAX);
            let handle = pools.all.insert_with(|handle| make(handle, device, 0, None, false));
            pools.devices.push((handle, handle));
        }
    }
    pools
}

fn of_device(device: i32) -> Answer<(u64, u64)> {
    context::check_device(device)?;
    pools().devices.get(device.unsigned_abs() as usize).copied().ok_or(INVALID_VALUE)
}

pub(crate) fn default_of(device: i32) -> Answer<u64> {
    of_device(device).map(|(default, _)| default)
}

pub(crate) fn current_of(device: i32) -> Answer<u64> {
    of_device(device).map(|(_, current)| current)
}

pub(crate) fn set_current(device: i32, handle: u64) -> Answer {
    context::check_device(device)?;
    let pool = get(handle)?;
    if pool.device != device || pool.is_imported {
        return Err(INVALID_VALUE);
    }
    if let Some(entry) = pools().devices.get_mut(device.unsigned_abs() as usize) {
        entry.1 = handle;
    }
    Ok(())
}

pub(crate) fn get(handle: u64) -> Answer<Arc<Pool>> {
    of_memory(handle).filter(|pool| !pool.is_destroyed()).ok_or(INVALID_VALUE)
}

/// The pool of an allocation, destroyed or not.
pub(crate) fn of_memory(handle: u64) -> Option<Arc<Pool>> {
    pools().all.get(handle).cloned()
}

pub(crate) fn create(device: i32, max: u64, shareable: bool) -> Answer<u64> {
    context::check_device(device)?;
    let file = if shareable {
        let detail = u8::try_from(device).unwrap_or(u8::MAX);
        let file = SharedFile::create(Purpose::Pool, detail).map_err(|_| OPERATING_SYSTEM)?;
        Some(Arc::new(file))
    } else {
        None
    };
    Ok(pools().all.insert_with(|handle| make(handle, device, max, file, false)))
}

/// Imports a pool of another process by a descriptor of its file.
pub(crate) fn import(descriptor: i32) -> Answer<u64> {
    let file = SharedFile::from_descriptor(descriptor, Purpose::Pool).ok_or(INVALID_VALUE)?;
    let device = i32::from(file.identity().detail());
    context::check_device(device).map_err(|_| INVALID_DEVICE)?;
    Ok(pools().all.insert_with(|handle| make(handle, device, 0, Some(Arc::new(file)), true)))
}

/// Destroys a pool. Its memory lives until it is freed. A default pool cannot be destroyed.
pub(crate) fn destroy(handle: u64) -> Answer {
    let pool = get(handle)?;
    let mut pools = pools();
    if pools.devices.iter().any(|(default, _)| *default == handle) {
        return Err(INVALID_VALUE);
    }
    if pool.lock().freeing != 0 {
        crash("a pool is destroyed while frees of its memory are pending");
    }
    pool.is_destroyed.store(true, Ordering::Release);
    for (default, current) in &mut pools.devices {
        if *current == handle {
            *current = *default;
        }
    }
    forget(&mut pools, &pool);
    Ok(())
}

/// Releases the handle of a destroyed pool once it has no memory any more.
fn forget(pools: &mut Pools, pool: &Pool) {
    if pool.is_destroyed() && pool.lock().held == 0 {
        pools.all.remove(pool.handle);
    }
}

/// The number of live pools, without the default ones.
pub(crate) fn count() -> usize {
    let pools = pools();
    pools.all.values().filter(|pool| !pool.is_destroyed()).count() - pools.devices.len()
}

/// Rounds bytes up to a multiple of [`STEP`].
fn up_to_steps(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(STEP).unwrap_or(u64::MAX)
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Figures> {
        lock(&self.figures)
    }

    fn is_destroyed(&self) -> bool {
        self.is_destroyed.load(Ordering::Acquire)
    }

    pub(crate) fn settings(&self) -> Settings {
        self.lock().settings
    }

    pub(crate) fn change(&self, act: impl FnOnce(&mut Settings)) {
        act(&mut self.lock().settings);
    }

    /// Bytes used, most bytes used, bytes reserved, most bytes reserved.
    pub(crate) fn figures(&self) -> [u64; 4] {
        let figures = self.lock();
        [figures.used, figures.used_high, figures.reserved, figures.reserved_high]
    }

    /// The file with its memory, if it can be shared.
    pub(crate) fn file(&self) -> Option<&Arc<SharedFile>> {
        self.file.as_ref()
    }

    pub(crate) fn is_imported(&self) -> bool {
        self.is_imported
    }

    /// The access that a device has to the pool's memory.
    pub(crate) fn access(&self, device: i32) -> u32 {
        if device == self.device {
            return READ_WRITE;
        }
        let access = lock(&self.access);
        access.get(&device).copied().unwrap_or(0)
    }

    pub(crate) fn set_access(&self, device: i32, flags: u32) {
        if device != self.device {
            lock(&self.access).insert(device, flags);
        }
    }

    /// The largest size, or 0 for no limit.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// Counts an allocation. An imported one has no bytes here.
    pub(crate) fn take(&self, bytes: u64) -> Answer {
        let mut figures = self.lock();
        let used = figures.used.checked_add(bytes).ok_or(OUT_OF_MEMORY)?;
        if self.max != 0 && used > self.max {
            return Err(OUT_OF_MEMORY);
        }
        figures.used = used;
        figures.held += 1;
        figures.used_high = figures.used_high.max(used);
        figures.reserved = figures.reserved.max(up_to_steps(used));
        figures.reserved_high = figures.reserved_high.max(figures.reserved);
        Ok(())
    }

    /// Uncounts an allocation that [`take`](Self::take) counted.
    pub(crate) fn give_back(&self, bytes: u64) {
        let mut figures = self.lock();
        figures.used = figures.used.saturating_sub(bytes);
        figures.held = figures.held.saturating_sub(1);
        drop(figures);
        if self.is_destroyed() {
            forget(&mut pools(), self);
        }
    }

    /// Counts a free of its memory that is queued in a stream, until [`end_free`](Self::end_free).
    pub(crate) fn begin_free(&self) {
        if self.is_destroyed() {
            crash("memory is freed in a stream's order whose pool is destroyed");
        }
        self.lock().freeing += 1;
    }

    pub(crate) fn end_free(&self) {
        self.lock().freeing -= 1;
    }

    pub(crate) fn trim(&self, keep: u64) {
        let mut figures = self.lock();
        let wanted = up_to_steps(keep.max(figures.used));
        figures.reserved = figures.reserved.min(wanted);
    }

    pub(crate) fn reset_highs(&self, used: bool) {
        let mut figures = self.lock();
        if used {
            figures.used_high = figures.used;
        } else {
            figures.reserved_high = figures.reserved;
        }
    }
}
