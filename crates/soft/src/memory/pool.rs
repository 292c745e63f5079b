//! Memory pools: the source of stream-ordered allocations, and their attributes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use cuda_sys::Version;

use crate::device::context;
use crate::driver::abort::crash;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{
    Answer, INVALID_DEVICE, INVALID_VALUE, NOT_SUPPORTED, OPERATING_SYSTEM, OUT_OF_MEMORY,
};
use crate::memory::Origin;
use crate::memory::shared_file::{Purpose, SharedFile};
use crate::sync::lock;

/// The first version with managed memory in pools.
pub(crate) const MANAGED_POOLS: Version = Version::new(13, 0);

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

/// Where a pool has its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) is_managed: bool,
    pub(crate) location: Location,
}

/// The location of a pool's memory, which managed memory may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    /// None is preferred, for managed memory.
    Anywhere,
    Device(i32),
    Host,
    HostNuma(i32),
}

impl Place {
    /// Memory of a device.
    pub(crate) fn device(device: i32) -> Self {
        Self { is_managed: false, location: Location::Device(device) }
    }

    fn check(self) -> Answer {
        match self.location {
            Location::Device(device) => context::check_device(device),
            // The host has one node.
            Location::HostNuma(1..) => Err(INVALID_VALUE),
            Location::HostNuma(_) | Location::Anywhere | Location::Host => Ok(()),
        }
    }

    /// The device that its memory is counted for.
    fn counted_device(self) -> i32 {
        if let Location::Device(device) = self.location { device } else { 0 }
    }
}

#[derive(Debug)]
struct Figures {
    settings: Settings,
    /// Bytes that are being allocated: nobody else may take them, and they may not come to be used.
    claimed: u64,
    used: u64,
    used_high: u64,
    reserved: u64,
    reserved_high: u64,
    /// The number of its allocations, imported ones included.
    held: u64,
    /// The number of frees queued in some stream.
    freeing: u64,
    /// It was destroyed and stays until its memory is freed, so that its handle is not reused
    /// before.
    is_destroyed: bool,
}

impl Figures {
    /// Whether the handle of the pool can be released.
    fn is_over(&self) -> bool {
        self.is_destroyed && self.held == 0
    }

    /// Notes that the pool is destroyed. Returns whether it is over, too.
    fn destroy(&mut self) -> Answer<bool> {
        if self.is_destroyed {
            return Err(INVALID_VALUE);
        }
        if self.freeing != 0 {
            crash("a pool is destroyed while frees of its memory are pending");
        }
        self.is_destroyed = true;
        Ok(self.is_over())
    }

    /// Counts claimed bytes as used.
    fn use_claimed(&mut self, bytes: u64) {
        self.claimed = self.claimed.saturating_sub(bytes);
        self.used = self.used.saturating_add(bytes);
        self.used_high = self.used_high.max(self.used);
        self.reserved = self.reserved.max(up_to_steps(self.used));
        self.reserved_high = self.reserved_high.max(self.reserved);
    }
}

/// A pool.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) handle: u64,
    pub(crate) place: Place,
    /// The device that its memory is counted for.
    pub(crate) device: i32,
    max: u64,
    /// The file with its memory, if it can be shared with other processes.
    file: Option<Arc<SharedFile>>,
    /// It was imported from another process. Nothing can be allocated from it.
    is_imported: bool,
    figures: Mutex<Figures>,
    /// The access that other devices have to its memory.
    access: Mutex<HashMap<i32, u32>>,
}

/// Read and write access, which a pool's own device always has.
pub(crate) const READ_WRITE: u32 = 3;

#[derive(Debug)]
struct Pools {
    all: Slots<Arc<Pool>>,
    /// The places that were asked for, with their default and current pools.
    places: Vec<(Place, Chosen)>,
}

/// The pools of a place.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    default: u64,
    current: u64,
}

static POOLS: Mutex<Pools> = Mutex::new(Pools { all: Slots::new(Kind::Pool), places: Vec::new() });

fn make(handle: u64, place: Place, max: u64, file: Option<Arc<SharedFile>>, is_imported: bool) -> Arc<Pool> {
    let device = place.counted_device();
    let settings = Settings { follow_events: true, opportunistic: true, internal: true, threshold: 0 };
    let figures = Mutex::new(Figures {
        settings,
        claimed: 0,
        used: 0,
        used_high: 0,
        reserved: 0,
        reserved_high: 0,
        held: 0,
        freeing: 0,
        is_destroyed: false,
    });
    Arc::new(Pool { handle, place, device, max, file, is_imported, figures, access: Mutex::default() })
}

fn pools() -> MutexGuard<'static, Pools> {
    lock(&POOLS)
}

/// The pools of a place. The default one is made when it is first asked for.
fn chosen(pools: &mut Pools, place: Place) -> Chosen {
    if let Some((_, chosen)) = pools.places.iter().find(|(own, _)| *own == place) {
        return *chosen;
    }
    let default = pools.all.insert_with(|handle| make(handle, place, 0, None, false));
    let chosen = Chosen { default, current: default };
    pools.places.push((place, chosen));
    chosen
}

pub(crate) fn default_of(place: Place) -> Answer<u64> {
    place.check()?;
    Ok(chosen(&mut pools(), place).default)
}

pub(crate) fn current_of(place: Place) -> Answer<u64> {
    place.check()?;
    Ok(chosen(&mut pools(), place).current)
}

pub(crate) fn set_current(place: Place, handle: u64) -> Answer {
    place.check()?;
    let mut pools = pools();
    // Under the lock, since another thread may destroy the pool.
    let pool = pools.all.get(handle).filter(|pool| !pool.is_destroyed()).ok_or(INVALID_VALUE)?;
    if pool.place != place || pool.is_imported {
        return Err(INVALID_VALUE);
    }
    let default = chosen(&mut pools, place).default;
    pools.places.retain(|(own, _)| *own != place);
    pools.places.push((place, Chosen { default, current: handle }));
    Ok(())
}

pub(crate) fn get(handle: u64) -> Answer<Arc<Pool>> {
    of_memory(handle).filter(|pool| !pool.is_destroyed()).ok_or(INVALID_VALUE)
}

/// The pool of an allocation, destroyed or not.
pub(crate) fn of_memory(handle: u64) -> Option<Arc<Pool>> {
    pools().all.get(handle).cloned()
}

pub(crate) fn create(place: Place, max: u64, shareable: bool) -> Answer<u64> {
    place.check()?;
    let file = if shareable {
        if place != Place::device(place.counted_device()) {
            return Err(NOT_SUPPORTED);
        }
        let detail = u8::try_from(place.counted_device()).unwrap_or(u8::MAX);
        let file = SharedFile::create(Purpose::Pool, detail).map_err(|_| OPERATING_SYSTEM)?;
        Some(Arc::new(file))
    } else {
        None
    };
    Ok(pools().all.insert_with(|handle| make(handle, place, max, file, false)))
}

/// Imports a pool of another process by a descriptor of its file.
pub(crate) fn import(descriptor: i32) -> Answer<u64> {
    let file = SharedFile::from_descriptor(descriptor, Purpose::Pool).ok_or(INVALID_VALUE)?;
    let device = i32::from(file.identity().detail());
    context::check_device(device).map_err(|_| INVALID_DEVICE)?;
    Ok(pools().all.insert_with(|handle| make(handle, Place::device(device), 0, Some(Arc::new(file)), true)))
}

/// Destroys a pool. Its memory lives until it is freed. A default pool cannot be destroyed.
pub(crate) fn destroy(handle: u64) -> Answer {
    let pool = get(handle)?;
    let mut pools = pools();
    if pools.places.iter().any(|(_, chosen)| chosen.default == handle) {
        return Err(INVALID_VALUE);
    }
    let is_over = pool.lock().destroy()?;
    for (_, chosen) in &mut pools.places {
        if chosen.current == handle {
            chosen.current = chosen.default;
        }
    }
    if is_over {
        pools.all.remove(handle);
    }
    Ok(())
}

/// The number of live pools, without the default ones.
pub(crate) fn count() -> usize {
    let pools = pools();
    pools.all.values().filter(|pool| !pool.is_destroyed()).count() - pools.places.len()
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
        self.lock().is_destroyed
    }

    /// The origin of its memory. That of the host and managed memory is there at once.
    pub(crate) fn origin(&self) -> Origin {
        match self.place {
            Place { is_managed: true, .. } => Origin::Managed,
            Place { location: Location::Device(_), .. } => Origin::Pool,
            Place { .. } => Origin::Pinned,
        }
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

    /// Allocates by `allocate`, and counts the allocation if that succeeds. An imported one has no
    /// bytes here.
    pub(crate) fn take<T>(&self, bytes: u64, allocate: impl FnOnce() -> Answer<T>) -> Answer<T> {
        self.claim(bytes)?;
        let made = allocate().inspect_err(|_| self.unclaim(bytes))?;
        self.lock().use_claimed(bytes);
        Ok(made)
    }

    /// Claims bytes, so that nobody else takes what a limited pool has left.
    fn claim(&self, bytes: u64) -> Answer {
        let mut figures = self.lock();
        if figures.is_destroyed {
            return Err(INVALID_VALUE);
        }
        let taken = figures.used.checked_add(figures.claimed).and_then(|taken| taken.checked_add(bytes));
        let taken = taken.ok_or(OUT_OF_MEMORY)?;
        if self.max != 0 && taken > self.max {
            return Err(OUT_OF_MEMORY);
        }
        figures.claimed += bytes;
        figures.held += 1;
        Ok(())
    }

    /// Takes back a claim whose allocation failed.
    fn unclaim(&self, bytes: u64) {
        self.release(|figures| figures.claimed = figures.claimed.saturating_sub(bytes));
    }

    /// Uncounts an allocation that [`take`](Self::take) counted. The handle of a destroyed pool is
    /// released with its last memory.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.release(|figures| figures.used = figures.used.saturating_sub(bytes));
    }

    /// Lets go of an allocation, or of the claim to one.
    fn release(&self, uncount: impl FnOnce(&mut Figures)) {
        let is_over = {
            let mut figures = self.lock();
            uncount(&mut figures);
            figures.held = figures.held.saturating_sub(1);
            figures.is_over()
        };
        if is_over {
            pools().all.remove(self.handle);
        }
    }

    /// Counts a free of its memory that a stream will execute, until [`end_free`](Self::end_free).
    pub(crate) fn begin_free(&self) {
        let mut figures = self.lock();
        if figures.is_destroyed {
            crash("memory is freed in a stream's order whose pool is destroyed");
        }
        figures.freeing += 1;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(max: u64) -> Arc<Pool> {
        make(0, Place::device(0), max, None, false)
    }

    /// Bytes used, and most bytes used.
    fn used(pool: &Pool) -> [u64; 2] {
        let [used, most, ..] = pool.figures();
        [used, most]
    }

    /// The inner allocation is one of another thread, at the worst time.
    #[test]
    fn an_allocation_that_fails_is_in_nobodys_figures() {
        let pool = pool(0);
        let outer: Answer = pool.take(1 << 40, || {
            pool.take(10, || Ok(()))?;
            assert_eq!(used(&pool), [10, 10]);
            Err(OUT_OF_MEMORY)
        });
        assert_eq!(outer, Err(OUT_OF_MEMORY));
        assert_eq!(pool.figures(), [10, 10, STEP, STEP]);
    }

    #[test]
    fn the_most_bytes_are_those_that_were_used_at_one_time() {
        let pool = pool(0);
        pool.take(10, || Ok(())).unwrap();
        pool.take(30, || {
            pool.give_back(10);
            Ok(())
        })
        .unwrap();
        assert_eq!(used(&pool), [30, 30]);
        pool.take(5, || pool.take(7, || Ok(()))).unwrap();
        pool.give_back(30);
        assert_eq!(used(&pool), [12, 42]);
        pool.reset_highs(true);
        assert_eq!(used(&pool), [12, 12]);
    }

    #[test]
    fn bytes_that_are_being_allocated_count_for_the_limit() {
        let pool = pool(100);
        let inner = |bytes| pool.take(60, || Ok(pool.take(bytes, || Ok(())))).unwrap();
        assert_eq!(inner(41), Err(OUT_OF_MEMORY));
        assert_eq!(used(&pool), [60, 60]);
        pool.give_back(60);
        assert_eq!(inner(40), Ok(()));
        assert_eq!(used(&pool), [100, 100]);
    }

    /// With two threads that note the figures of each other's allocations.
    #[test]
    fn threads_at_once_leave_figures_that_fit() {
        let pool = pool(0);
        std::thread::scope(|scope| {
            for bytes in [3, 5] {
                let pool = &pool;
                scope.spawn(move || {
                    for _ in 0..1000 {
                        pool.take(bytes, || Ok(())).unwrap();
                        pool.give_back(bytes);
                        let failed: Answer = pool.take(1000, || Err(OUT_OF_MEMORY));
                        assert_eq!(failed, Err(OUT_OF_MEMORY));
                    }
                });
            }
        });
        let [used, most] = used(&pool);
        assert!(used == 0 && (5..=8).contains(&most), "{used}, {most}");
    }
}
