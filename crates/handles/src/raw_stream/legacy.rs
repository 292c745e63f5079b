//! The turn of the legacy default streams.
//!
//! A call on a legacy stream invalidates the captures of all blocking streams of its context. So
//! whoever makes one asks first whether any captures, and shares this turn from the question to the
//! driver's answer; whoever lets a blocking stream enter a capture has it alone. A capture that
//! ends in between does no harm.
//!
//! One turn serves all contexts: it is held for moments, by calls that wait for nothing.

use std::sync::LazyLock;

use crate::access::{Alone, BLOCKS, Shared, Turns, holders, own_block};
use crate::context::{Context, unless_inside};
use crate::error::Result;

/// No stream's number ever gets there.
const NUMBER: u64 = u64::MAX;

static TURN: LazyLock<Turns> = LazyLock::new(|| Turns::new(NUMBER));

/// While this is held no blocking stream enters a capture of this library. No call that waits is
/// made with it. `context` is that of the call.
///
/// # Errors
/// This is a host function, and a blocking stream is entering a capture (`NOT_PERMITTED`).
pub(crate) fn share(context: &Context) -> Result<Shared<'static>> {
    match TURN.share(own_block()) {
        Some(turn) => Ok(turn),
        None => {
            let busy = || holders::changing("the legacy stream".to_owned());
            unless_inside(context, busy, || TURN.share_again(own_block()))
        }
    }
}

/// While this is held nobody is calling a legacy stream.
pub(crate) fn try_alone() -> Option<Alone<'static>> {
    TURN.try_alone(&BLOCKS)
}
