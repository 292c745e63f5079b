//! One at a time: calls that make and end clones of graphs.
//!
//! The driver links a clone, and what is embedded in a child node is one, with its original, and
//! does not guard the link: a clone that ended on one thread while another one was made of the same
//! graph crashed it (seen: driver 580), though both graphs were used by one thread at a time.

use crate::context::{Context, lock_unless_inside};
use crate::error::Result;
use crate::sync::{Lock, LockGuard, Rank, for_a_moment, process};

static ALONE: Lock<()> = Lock::new(Rank::Clones, ());

/// Held over each such call: cloning a graph, embedding it or replacing what is embedded, removing
/// nodes, destroying graphs. Whoever makes such calls with raw handles beside this library takes it
/// too.
///
/// No other lock of this library is taken while it is held. In a forked child, where no such call
/// can be made, it holds nothing and waits for nobody.
///
/// # Errors
/// In a host function, while another thread has it: `NOT_PERMITTED`, as the driver answers such
/// calls there, since one of the calls that it is held over may be waiting for that very function.
/// Elsewhere [`Error::Busy`](crate::Error::Busy), if others have had it all the time, or one that
/// was forgotten.
#[doc(alias = "cuGraphClone")]
pub fn alone(context: &Context) -> Result<Alone> {
    let what = "`clones::alone`";
    let held = (!process::is_forked()).then(|| lock_unless_inside(context, what, &ALONE)).transpose()?;
    Ok(Alone { _held: held })
}

/// As [`alone`], for who can do without: `None` if somebody has it for more than a moment.
pub(crate) fn alone_soon() -> Option<Alone> {
    if process::is_forked() {
        return Some(Alone { _held: None });
    }
    let held = ALONE.try_in_order().or_else(|| for_a_moment(|| ALONE.try_lock()))?;
    Some(Alone { _held: Some(held) })
}

/// Nobody else makes or ends clones of graphs; see [`alone`].
#[derive(Debug)]
#[must_use = "dropping it lets others make and end clones"]
pub struct Alone {
    _held: Option<LockGuard<'static, ()>>,
}
