//! Locks with a rank. Poisoning is ignored: a panic while the lock is held does not block others.

use core::fmt;
use core::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::rank::{Held, Rank, hold};

/// A mutex with a declared [rank](Rank), which debug builds check.
pub struct Lock<T> {
    #[cfg(debug_assertions)]
    rank: Rank,
    mutex: Mutex<T>,
}

/// The value of a [`Lock`], until this is dropped.
#[must_use]
pub struct LockGuard<'l, T> {
    value: MutexGuard<'l, T>,
    _held: Option<Held>,
}

impl<T> Lock<T> {
    /// A lock of this rank.
    #[cfg_attr(not(debug_assertions), allow(unused_variables))]
    pub const fn new(rank: Rank, value: T) -> Self {
        Self {
            #[cfg(debug_assertions)]
            rank,
            mutex: Mutex::new(value),
        }
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

    /// The value, once no other thread has it.
    #[inline]
    pub fn lock(&self) -> LockGuard<'_, T> {
        self.rank().check();
        let value = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        LockGuard { value, _held: Some(hold(self.rank())) }
    }

    /// The value, unless another thread has it. The rank is not checked: nothing waits.
    #[inline]
    pub fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        let value = self.try_value()?;
        Some(LockGuard { value, _held: Some(hold(self.rank())) })
    }

    /// [`try_lock`](Self::try_lock) for a guard that stays out of the lock order.
    pub fn try_lock_unranked(&self) -> Option<LockGuard<'_, T>> {
        let value = self.try_value()?;
        Some(LockGuard { value, _held: None })
    }

    #[inline]
    fn try_value(&self) -> Option<MutexGuard<'_, T>> {
        match self.mutex.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(value)) => Some(value.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The first attempt of a wait: as [`try_lock`](Self::try_lock), but checks the rank.
    #[inline]
    pub fn try_in_order(&self) -> Option<LockGuard<'_, T>> {
        self.rank().check();
        self.try_lock()
    }

    /// The value of a lock that is not shared.
    pub fn get_mut(&mut self) -> &mut T {
        self.mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: fmt::Debug> fmt::Debug for Lock<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mutex.fmt(formatter)
    }
}

impl<T: fmt::Debug> fmt::Debug for LockGuard<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(formatter)
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
