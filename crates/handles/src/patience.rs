//! Waiting for what another thread is doing, by trying again and again.

use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use crate::context::Context;
use crate::error::Result;

/// How long something is tried where nobody may wait.
const MOMENT: Duration = Duration::from_millis(5);

/// Tries until it works, without keeping a processor busy for long.
#[cold]
pub(crate) fn patiently<R>(mut attempt: impl FnMut() -> Option<R>) -> R {
    let mut tries = 0;
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        pause(&mut tries);
    }
}

/// As [`patiently`], but no longer than `bound`.
#[cold]
pub(crate) fn for_at_most<R>(bound: Duration, mut attempt: impl FnMut() -> Option<R>) -> Option<R> {
    let (mut tries, begin) = (0, Instant::now());
    loop {
        let result = attempt();
        if result.is_some() || begin.elapsed() >= bound {
            return result;
        }
        pause(&mut tries);
    }
}

/// Tries until it works, for what another thread may hold over a driver call that waits. Inside a host function, the call may be waiting for
/// that very function: there it is tried for a moment and then refused, as the driver refuses things there. Nobody is asked whether this is one
/// where the first try works.
#[inline]
pub(crate) fn unless_inside<R>(context: &Context, mut attempt: impl FnMut() -> Option<R>) -> Result<R> {
    match attempt() {
        Some(result) => Ok(result),
        None => longer(context, attempt),
    }
}

/// The value of a lock under the same terms.
///
/// For the locks of the crates above this one, too.
#[doc(hidden)]
#[inline]
pub fn lock_unless_inside<'m, T>(context: &Context, mutex: &'m Mutex<T>) -> Result<MutexGuard<'m, T>> {
    match try_lock(mutex) {
        Some(value) => Ok(value),
        None => lock_later(context, mutex),
    }
}

/// The value of a lock that nobody has. Who panics with it leaves it as it is.
#[inline]
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(value) => Some(value),
        Err(TryLockError::Poisoned(value)) => Some(value.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Whoever may wait sleeps until he has it.
#[cold]
fn lock_later<'m, T>(context: &Context, mutex: &'m Mutex<T>) -> Result<MutexGuard<'m, T>> {
    match context.refuse_in_callback() {
        Ok(()) => Ok(mutex.lock().unwrap_or_else(PoisonError::into_inner)),
        Err(refusal) => for_at_most(MOMENT, || try_lock(mutex)).ok_or(refusal),
    }
}

#[cold]
fn longer<R>(context: &Context, attempt: impl FnMut() -> Option<R>) -> Result<R> {
    match context.refuse_in_callback() {
        Ok(()) => Ok(patiently(attempt)),
        Err(refusal) => for_at_most(MOMENT, attempt).ok_or(refusal),
    }
}

fn pause(tries: &mut u32) {
    *tries = tries.saturating_add(1);
    if *tries < 100 {
        std::thread::yield_now();
    } else {
        std::thread::sleep(Duration::from_micros(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_with_success_or_the_bound() {
        let mut tries = 0;
        let mut third = || {
            tries += 1;
            (tries % 3 == 0).then_some(tries)
        };
        assert_eq!(patiently(&mut third), 3);
        assert_eq!(for_at_most(Duration::from_secs(60), &mut third), Some(6));
        let begin = Instant::now();
        assert_eq!(for_at_most(Duration::from_millis(20), || None::<()>), None);
        assert!(begin.elapsed() >= Duration::from_millis(20));
    }
}
