//! Dropping what an executable graph has kept alive, once its runs are over.

use core::any::Any;
use core::cell::RefCell;
use core::mem::ManuallyDrop;
use std::sync::Arc;

use super::{FreeKind, PendingFree, push_free};
use crate::context::Context;
use crate::destroy::{self, Kept, Node};
use crate::stream::HeldStream;
use crate::sync::process;

/// Drops a value once all work that is enqueued on these streams now is done: here, if it is done
/// already, otherwise by the reaper. A panic in its destructor is reported to the
/// [hook](crate::reaper::set_hook).
///
/// In a host function the reaper drops it, and once the context is lost it does so without asking
/// for the work. While the process exits, and in a forked child, nothing is dropped.
pub fn drop_behind(context: &Context, value: impl Any + Send + Sync, streams: &[HeldStream]) {
    let value = Kept::new(value);
    if !process::is_running() {
        core::mem::forget(value);
    } else if context.lost().is_some() {
        destroy::drop_later(value);
    } else if streams.iter().all(HeldStream::is_idle_soon) {
        match context.refuse_in_callback() {
            Ok(()) => drop_in_line(value),
            Err(_) => destroy::drop_later(value),
        }
    } else if let Some((last, others)) = streams.split_last() {
        // Each of them holds the value, so the last one drops it. This thread keeps no reference:
        // the reaper may be done before it, and then this thread would drop the value.
        others.iter().for_each(|stream| hand_over(value.clone(), stream));
        hand_over(value, last);
    }
}

/// Lets the reaper drop a reference behind the work of a stream, which need not be of the value's
/// context.
fn hand_over(value: Kept, stream: &HeldStream) {
    let stream = stream.raw_stream();
    let (home, what) = (Some(Arc::clone(stream)), FreeKind::Behind(value));
    push_free(Node::new(PendingFree { context: stream.context().clone(), home, what }));
}

thread_local! {
    /// While a value is dropped on this thread: the values that are to be dropped after it. It
    /// exists to the end of the thread, as destructors may drop executables then.
    static WAITING: RefCell<ManuallyDrop<Option<Vec<Kept>>>> =
        const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Drops a value on this thread. In the drop of another one it waits for the end of that:
/// executables may keep each other in a long line.
fn drop_in_line(value: Kept) {
    let mut value = Some(value);
    let begins = WAITING.try_with(|waiting| match &mut **waiting.borrow_mut() {
        Some(waiting) => {
            waiting.extend(value.take());
            false
        }
        none => {
            *none = Some(Vec::new());
            true
        }
    });
    drop(value);
    if !matches!(begins, Ok(true)) {
        return;
    }
    // A value is dropped while the list is not borrowed: it may add more.
    while let Some(next) = WAITING.try_with(next).ok().flatten() {
        drop(next);
    }
}

/// The next one; once there is none, the list is gone.
fn next(waiting: &RefCell<ManuallyDrop<Option<Vec<Kept>>>>) -> Option<Kept> {
    let mut waiting = waiting.borrow_mut();
    let next = waiting.as_mut().and_then(Vec::pop);
    if next.is_none() {
        **waiting = None;
    }
    next
}
