//! The streams on which the memory of captures is allocated. The library captures nothing there.

use crate::context::Context;
use crate::error::Result;
use crate::registry::Raw;
use crate::stream::{Stream, WeakStream};
use crate::sync::{Lock, Rank};

/// One for each context in which a capture has allocated memory, as long as some of that is left.
static HOMES: Lock<Vec<(usize, WeakStream)>> = Lock::new(Rank::ScratchHomes, Vec::new());

/// The stream for a context, made where there is none.
pub(super) fn home_for(context: &Context) -> Result<Stream> {
    let key = Raw::new(context.as_raw()).key();
    // Of another context, it would be the last handle of a stream that is dropped under the lock.
    let known = HOMES.lock().iter().filter(|(other, _)| *other == key).find_map(|(_, home)| home.upgrade());
    if let Some(home) = known {
        return Ok(home);
    }
    let home = context.stream()?;
    let mut homes = HOMES.lock();
    homes.retain(|(_, other)| !other.is_gone());
    homes.push((key, home.downgrade()));
    Ok(home)
}
