//! The threads that hold the access of a stream, in words.

use super::own_slots::users;
use super::stream_access::StreamAccess;
use crate::context::Busy;

/// How many threads a message names.
const NAMED: usize = 6;

/// For a writer that found readers.
pub(crate) fn used(what: String, access: &StreamAccess) -> Busy {
    let mut users = users(access.number());
    users.sort_unstable();
    let counted = access.counted() as usize;
    let more = users.len().saturating_sub(NAMED) + counted;
    users.truncate(NAMED);
    let others = match (users.is_empty(), more) {
        (_, 0) => None,
        (true, more) => Some(format!("{more} that it does not know of by thread")),
        (false, more) => Some(format!("{more} more")),
    };
    let names: Vec<String> = users.into_iter().chain(others).collect();
    let by = match names.is_empty() {
        true => "others, one after the other".to_owned(),
        false => names.join(", "),
    };
    const HOW: &str = "a call that waits for it, or an `Enqueue` guard, which may have been forgotten";
    Busy { what: what.into(), by: format!("{by} (with {HOW})").into() }
}

/// For a reader that found a writer.
pub(crate) fn changing(what: String) -> Busy {
    const BY: &str =
        "a thread that lets it enter or leave a capture, from which call the driver has not returned";
    Busy { what: what.into(), by: BY.into() }
}
