//! One at a time: calls that make and end clones of graphs.
//!
//! The driver links a clone with its original, also a graph that is embedded in a child node, and
//! does not guard the link. A clone that was destroyed on one thread while another clone of the
//! same graph was made crashed the driver (seen: driver 580), though each graph was used by one
//! thread at a time.

use crate::context::{Context, lock_unless_inside, lock_unranked_unless_inside};
use crate::error::Result;
use crate::sync::{Lock, LockGuard, Rank, for_a_moment, process};

static ALONE: Lock<()> = Lock::new(Rank::Clones, ());

/// Takes the lock that is held over each such call: cloning a graph, embedding it or replacing an
/// embedded one, removing nodes, destroying graphs. Code that makes such calls with raw handles
/// beside this library takes it too.
///
/// Calls of this library that need the lock are refused on the thread that holds it. In a forked
/// child, where no such call can be made, it holds nothing and never waits.
///
/// # Errors
/// `NOT_PERMITTED` in a host function while another thread has the lock: that thread's call may be
/// waiting for the function. Elsewhere [`Error::Busy`](crate::Error::Busy) if other threads had it
/// all the time, or a guard was forgotten.
#[doc(alias = "cuGraphClone")]
pub fn alone(context: &Context) -> Result<Alone> {
    let held = (!process::is_forked()).then(|| lock_unranked_unless_inside(context, WHAT, &ALONE));
    Ok(Alone { _held: held.transpose()? })
}

const WHAT: &str = "`clones::alone`";

/// [`alone`] for this library's own calls, whose order of locks is checked. A guard of the user's
/// is in no order: the user may call anything while holding it, and is answered `Busy`.
///
/// # Errors
/// As [`alone`].
pub fn alone_in_order(context: &Context) -> Result<Alone> {
    let held = (!process::is_forked()).then(|| lock_unless_inside(context, WHAT, &ALONE));
    Ok(Alone { _held: held.transpose()? })
}

/// As [`alone`], for drops: `None` if another thread has the lock for more than a moment.
pub(crate) fn alone_soon() -> Option<Alone> {
    if process::is_forked() {
        return Some(Alone { _held: None });
    }
    let held = ALONE.try_lock().or_else(|| for_a_moment(|| ALONE.try_lock()))?;
    Some(Alone { _held: Some(held) })
}

/// No other thread makes or destroys clones of graphs while this is held; see [`alone`].
#[derive(Debug)]
#[must_use = "dropping it lets others make and end clones"]
pub struct Alone {
    _held: Option<LockGuard<'static, ()>>,
}
