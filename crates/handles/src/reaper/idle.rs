//! Objects in whose end the driver waits for all work of the device, and which are not to wait for a drain: they end once no stream has work.

use core::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use super::list::{List, Node};
use super::queue::{self, Doomed, Object};
use super::running;
use crate::context::Context;

pub(super) static WAITING: List<Doomed> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));

/// Destroys an object now if no stream of its context has work, or else on the reaper's thread, once that is so.
pub(crate) fn destroy_when_idle(context: &Context, object: Object, keep: Option<Arc<dyn Any + Send + Sync>>) {
    if !queue::may_call(context) {
        return;
    }
    if let Err(doomed) = try_end(Doomed { context: context.clone(), object, keep }) {
        queue::expect_one();
        WAITING.push(Node::new(doomed));
        queue::wake();
    }
}

/// Ends those that can end now. On the reaper's thread, or where somebody drains: the driver may be
/// held up for long by work on streams that nobody knows of.
pub(super) fn work() -> usize {
    queue::end_all(&WAITING, try_end)
}

fn try_end(doomed: Doomed) -> Result<(), Doomed> {
    match running::ensure_idle(&doomed.context, "") {
        Ok(()) => queue::try_destroy(doomed),
        Err(_) => Err(doomed),
    }
}
