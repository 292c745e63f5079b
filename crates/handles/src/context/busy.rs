//! Waiting for something that another call holds: for a set time, and not inside a host function.

use super::handle::Context;
use crate::error::{Error, Result};
use crate::sync::{Lock, LockGuard, for_a_moment, for_at_most, patience};

/// Something that a thread waited for in vain, and its holders.
pub(crate) struct Busy {
    pub(crate) what: Box<str>,
    pub(crate) by: Box<str>,
}

impl Busy {
    /// Something that is held over calls of the driver.
    pub(crate) fn called(what: &str) -> Self {
        const CALL: &str =
            "another call, from which the driver has not returned, or out of which this one is made";
        Self { what: what.into(), by: CALL.into() }
    }
}

impl From<Busy> for Error {
    fn from(Busy { what, by }: Busy) -> Self {
        Self::Busy { what, by, patience: patience() }
    }
}

/// Repeats an attempt until it succeeds or [`patience`](crate::patience) has run out, for something
/// that another thread may hold over a driver call. Inside a host function, that driver call may be
/// waiting for the function: there the attempt is repeated for a moment and then refused, as the
/// driver refuses calls there. If the first attempt succeeds, nothing asks whether this is a host
/// function.
#[inline]
pub(crate) fn unless_inside<R>(
    context: &Context,
    busy: impl FnOnce() -> Busy,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R> {
    match attempt() {
        Some(result) => Ok(result),
        None => longer(context, busy, attempt),
    }
}

/// Repeats an attempt under the same terms; the error names `what` is held, and `by` whom.
#[inline]
pub fn wait_unless_inside<R>(
    context: &Context,
    what: &str,
    by: &str,
    attempt: impl FnMut() -> Option<R>,
) -> Result<R> {
    unless_inside(context, || Busy { what: what.into(), by: by.into() }, attempt)
}

/// Takes a lock under the same terms; the error names the lock as `what`.
#[inline]
pub fn lock_unless_inside<'l, T>(
    context: &Context,
    what: &str,
    lock: &'l Lock<T>,
) -> Result<LockGuard<'l, T>> {
    match lock.try_in_order() {
        Some(value) => Ok(value),
        None => longer(context, || Busy::called(what), || lock.try_lock()),
    }
}

/// As [`lock_unless_inside`], for a lock that users hold over code of theirs: it has no place in
/// the order.
#[inline]
pub(crate) fn lock_unranked_unless_inside<'l, T>(
    context: &Context,
    what: &str,
    lock: &'l Lock<T>,
) -> Result<LockGuard<'l, T>> {
    unless_inside(context, || Busy::called(what), || lock.try_lock_unranked())
}

/// As [`lock_unless_inside`], for a second lock of a rank: the caller takes the two in an order of
/// its own, which is not checked.
#[inline]
pub fn lock_second_unless_inside<'l, T>(
    context: &Context,
    what: &str,
    lock: &'l Lock<T>,
) -> Result<LockGuard<'l, T>> {
    unless_inside(context, || Busy::called(what), || lock.try_lock())
}

/// The value of a lock, once no other thread has it, or [`patience`] has run out.
pub(crate) fn lock_patiently<'l, T>(what: &str, lock: &'l Lock<T>) -> Result<LockGuard<'l, T>> {
    for_at_most(patience(), || lock.try_in_order()).ok_or_else(|| Busy::called(what).into())
}

#[cold]
fn longer<R>(
    context: &Context,
    busy: impl FnOnce() -> Busy,
    attempt: impl FnMut() -> Option<R>,
) -> Result<R> {
    match context.refuse_in_callback() {
        Ok(()) => for_at_most(patience(), attempt).ok_or_else(|| busy().into()),
        Err(refusal) => for_a_moment(attempt).ok_or(refusal),
    }
}
