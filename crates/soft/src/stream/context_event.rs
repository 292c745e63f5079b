//! Events that stand for all streams of a context, or that all of them wait for.

use std::sync::Arc;

use super::event::Event;
use super::queue::{Ticket, ends_of, hold_context, make_unnamed};
use crate::device::context::Context;

/// `cuCtxRecordEvent`: the event is reached when all work so far of the context is done.
pub(crate) fn record(context: &Arc<Context>, event: &Event) {
    let so_far = ends_of(context);
    let stream = make_unnamed(context);
    stream.push_always(move || so_far.iter().for_each(Ticket::wait));
    event.record(&stream);
}

/// `cuCtxWaitEvent`: all later work of the context waits for the event.
pub(crate) fn make_wait(context: &Context, event: &Event) {
    if let Some(marker) = event.last().filter(|marker| marker.time().is_none()) {
        hold_context(context, &marker);
    }
}
