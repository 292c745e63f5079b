//! One at a time: calls that make and end clones of graphs.
//!
//! The driver links a clone, and what is embedded in a child node is one, with its original, and does not guard the link: a clone that ended on one
//! thread while another one was made of the same graph crashed it (seen: driver 580), though both graphs were used by one thread at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::context::Context;
use crate::error::Result;
use crate::patience::lock_unless_inside;
use crate::process;

static ALONE: Mutex<()> = Mutex::new(());

/// Held over each such call: cloning a graph, embedding it or replacing what is embedded, removing nodes, destroying graphs. Whoever makes such calls with raw
/// handles beside this library takes it too.
///
/// No other lock of this library is taken while it is held. In a forked child, where no such call can be made, it holds nothing and waits for nobody.
///
/// Not for host functions, where no such call is permitted: who has it may be waiting for them. [`alone_unless_inside`] refuses there.
#[doc(alias = "cuGraphClone")]
pub fn alone() -> Alone {
    let held = (!process::is_forked()).then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner));
    Alone { _held: held }
}

/// As [`alone`], but inside a host function it does not wait for long: one of the calls that it is held over may be waiting for that very function.
///
/// # Errors
/// In a host function, while another thread has it: `NOT_PERMITTED`, as the driver answers such calls there.
pub fn alone_unless_inside(context: &Context) -> Result<Alone> {
    let held = (!process::is_forked()).then(|| lock_unless_inside(context, &ALONE)).transpose()?;
    Ok(Alone { _held: held })
}

/// Nobody else makes or ends clones of graphs; see [`alone`].
#[derive(Debug)]
#[must_use = "dropping it lets others make and end clones"]
pub struct Alone {
    _held: Option<MutexGuard<'static, ()>>,
}
