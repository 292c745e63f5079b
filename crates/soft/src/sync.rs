//! Locks, and the order in which they are taken.
//!
//! Poisoning is ignored: a panic on one thread must not make every later call panic. All of the
//! driver takes locks by the functions of this file.
//!
//! # Lock order
//!
//! A thread that holds a lock only takes locks further down in this list. Locks of one entry are
//! never held together, unless it names an order.
//!
//! 1. `EXCLUSION` (`stream/callback.rs`): held while a callback of the user runs, which may call
//!    the driver.
//! 2. `Exec::last`: held while a launch is enqueued.
//! 3. `ENQUEUE_GATE` (`stream/queue.rs`): for reading while work is enqueued; for writing while all
//!    work is awaited and `act` runs, which takes any lock below.
//! 4. `CAPTURES` (`graph/capture/state.rs`).
//! 5. `STORE` (`graph/model/store.rs`): never held while a destructor of the user runs.
//! 6. `OPEN_CAPTURES`, `OBJECTS`, `RESERVED_NODES`, `NodeMemory::frees`, `ConditionValues`,
//!    `EVENTS`, `Event::last`.
//! 7. `LIVES` (`graph/exec/lifetimes.rs`).
//! 8. `LIBRARIES`, then `KERNELS`; `Library::modules`, then `MODULES`, `Module::functions`,
//!    `FUNCTIONS`.
//! 9. `POOLS`, then `Pool::figures`; `OPENED` (`abi/ipc.rs`); `LINKS` (`abi/link.rs`).
//! 10. `MAPPED` (`memory/graph_mapping.rs`).
//! 11. `MAP`, `ACCOUNTS`, `ADDRESSES`, `FREED`, `RESERVED`, `FREE` of `memory/`.
//! 12. `STREAMS`, then `DRAINING`; `PER_THREAD`; `LEGACY`, `AWAITED` (`stream/queue.rs`).
//! 13. `Stream::queue`: never two at a time; held while a marker is reached.
//! 14. `Marker::reached`, `CONTEXTS`, `LOSSES`, `THREADS`, and all others: nothing is taken under
//!     these.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Locks a mutex.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for reading.
pub(crate) fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing.
pub(crate) fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Waits while `condition` holds, at most for `limit`. The flag is true if it timed out.
pub(crate) fn wait_while<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Duration,
    condition: impl FnMut(&mut T) -> bool,
) -> (MutexGuard<'a, T>, bool) {
    let waited = condvar.wait_timeout_while(guard, limit, condition);
    let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
    (guard, timeout.timed_out())
}

/// The value of an exclusively borrowed mutex.
pub(crate) fn get_mut<T: ?Sized>(mutex: &mut Mutex<T>) -> &mut T {
    mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the value out of a mutex.
pub(crate) fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
