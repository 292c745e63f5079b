//! A lock that is mostly free and held for moments. It costs half of std's: one atomic operation to
//! take it, and a store to release it.

use core::cell::UnsafeCell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use super::rank::{Held, Rank, hold};

/// A value behind such a lock. A panic while the lock is held does not block others.
pub(crate) struct SpinLock<T> {
    #[cfg(debug_assertions)]
    rank: Rank,
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is one thread's at a time, to which it may come from another.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    #[cfg_attr(not(debug_assertions), allow(unused_variables))]
    pub(crate) const fn new(rank: Rank, value: T) -> Self {
        Self {
            #[cfg(debug_assertions)]
            rank,
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// The value of a lock that is not shared.
    pub(crate) fn into_inner(self) -> T {
        self.value.into_inner()
    }

    #[cfg(debug_assertions)]
    fn rank(&self) -> Rank {
        self.rank
    }

    #[cfg(not(debug_assertions))]
    #[inline(always)]
    fn rank(&self) -> Rank {
        // No build without checks looks at it.
        Rank::CallbackHook
    }

    /// Takes the lock, unless another thread has it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        self.rank().check();
        let is_free = !self.held.swap(true, Ordering::Acquire);
        is_free.then(|| SpinGuard { lock: self, _held: hold(self.rank()) })
    }
}

impl<T> fmt::Debug for SpinLock<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SpinLock").field("held", &self.held).finish_non_exhaustive()
    }
}

/// The value, until this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct SpinGuard<'l, T> {
    lock: &'l SpinLock<T>,
    _held: Held,
}

// SAFETY: sharing it shares the value.
unsafe impl<T: Sync> Sync for SpinGuard<'_, T> {}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: there is one of these at a time.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one of these at a time.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.held.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::sync::for_at_most;

    impl<T> SpinLock<T> {
        fn lock(&self) -> SpinGuard<'_, T> {
            for_at_most(Duration::from_secs(60), || self.try_lock()).unwrap()
        }
    }

    #[test]
    fn one_at_a_time_has_the_value() {
        let count = SpinLock::new(Rank::Event, 0_u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let mut held = count.lock();
                        let before = *held;
                        std::hint::black_box(&mut held);
                        *held = before + 1;
                    }
                });
            }
        });
        assert_eq!(*count.lock(), 8_000);
    }

    #[test]
    fn a_holder_that_panics_gives_it_back() {
        let value = SpinLock::new(Rank::HostCache, 1);
        let outcome = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            *value.lock() = 2;
            let _held = value.lock();
            panic!("on purpose");
        }));
        assert!(outcome.is_err());
        assert_eq!(*value.lock(), 2);
    }
}
