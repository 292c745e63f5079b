//! Objects in whose end the driver waits for all work of the device, and which are not to wait for
//! a drain: they end once no stream has work.

use core::any::Any;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use super::threads::destroy_elsewhere;
use crate::context::{Context, in_host_function};
use crate::destroy::{self, Destruction, List, Node, Object};
use crate::raw_stream::{self};

pub(crate) static UNTIL_IDLE: List<Destruction> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));

/// How long a destruction that should take no time is waited for. Work that this library does not
/// know may hold it up forever, so it is made on a thread of its own.
const PASSING: Duration = Duration::from_millis(100);

/// Destroys an object now if no stream of its context has work, or else on the reaper's thread once
/// none has.
pub(crate) fn destroy_when_idle(context: &Context, object: Object, keep: Option<Arc<dyn Any + Send + Sync>>) {
    if !destroy::may_call(context) {
        return;
    }
    destroy::expect_one();
    let destruction = Destruction { context: context.clone(), object, keep };
    if in_host_function::is_inside() || !is_idle(&destruction) {
        UNTIL_IDLE.push(Node::new(destruction));
        destroy::wake();
    } else {
        end(vec![destruction]);
    }
}

/// Destroys the objects whose contexts are idle. Called on the reaper's thread or in a drain: work
/// on unknown streams may hold up the driver for long.
pub(crate) fn work() -> usize {
    let (idle, busy): (Vec<_>, Vec<_>) = UNTIL_IDLE.take().partition(is_idle);
    busy.into_iter().for_each(|destruction| UNTIL_IDLE.push(Node::new(destruction)));
    end(idle)
}

fn is_idle(destruction: &Destruction) -> bool {
    raw_stream::ensure_idle(&destruction.context, "").is_ok()
}

fn end(destruction: Vec<Destruction>) -> usize {
    // Once more, right before the call: a thread takes its time to start.
    let try_end = |destruction: Destruction| {
        if is_idle(&destruction) { destroy::try_destroy(destruction) } else { Err(destruction) }
    };
    destroy_elsewhere(destruction, &UNTIL_IDLE, try_end, PASSING).unwrap_or(0)
}
