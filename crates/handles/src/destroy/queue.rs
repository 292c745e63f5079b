//! Tries to destroy in the drop; queues for the reaper what the driver refuses.

use core::any::Any;
use std::sync::atomic::AtomicPtr;
use std::sync::{Arc, OnceLock, Weak};
use std::thread::Thread;

use cuda_sys::{CUlib_st, CUresult};

use super::failure::report;
use super::list::{List, Node};
use super::object::{Object, call_destroy, what};
use super::payload::Payload;
use super::pending::{expect_one, one_done};
use crate::context::{Context, in_host_function};
use crate::error::Result;
use crate::registry::Raw;
use crate::sync::process;

/// An object whose destruction the driver refused where it was tried.
#[derive(Debug)]
pub(crate) struct Destruction {
    pub(crate) context: Context,
    pub(crate) object: Object,
    /// A value that the object uses until it is destroyed.
    pub(crate) keep: Option<Arc<dyn Any + Send + Sync>>,
}

impl Destruction {
    /// Whether it is kept until the object's end.
    pub(crate) fn keeps(&self, kept: &Weak<()>) -> bool {
        self.keep.as_ref().is_some_and(|keep| core::ptr::addr_eq(Arc::as_ptr(keep), kept.as_ptr()))
    }
}

/// A library without handles, with the options that its driver object may point to.
pub(crate) struct UnusedLibrary {
    pub(crate) context: Context,
    pub(crate) raw: Raw<CUlib_st>,
    pub(crate) keep: Box<dyn Any + Send>,
}

pub(crate) static OBJECTS: List<Destruction> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));
pub(crate) static PAYLOADS: List<Arc<Payload>> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));
pub(crate) static LIBRARIES: List<UnusedLibrary> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));

/// Executables whose end waits for all work of the device.
pub(crate) static DEFERRED: List<Destruction> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));

static STARTER: OnceLock<fn() -> Option<Thread>> = OnceLock::new();
static THREAD: OnceLock<Option<Thread>> = OnceLock::new();

/// Sets the function that starts the reaper's thread when it is first needed.
pub(crate) fn set_starter(starter: fn() -> Option<Thread>) {
    let _ = STARTER.set(starter);
}

/// Starts the reaper's thread unless it runs already. Without a thread, everything waits for
/// [`drain`](crate::reaper::drain).
pub(crate) fn start() -> Option<&'static Thread> {
    let starter = STARTER.get()?;
    THREAD.get_or_init(starter).as_ref()
}

/// Keeps the reaper's thread from starting, for hosts that allow no threads. Everything then waits
/// for [`drain`](crate::reaper::drain), which the host has to call from time to time. Call this
/// before the library is used. Returns whether there is no thread: false if it was started before.
#[must_use]
pub fn manual() -> bool {
    // Another thread of the parent may have been about to start the reaper's; a forked child has
    // neither.
    process::is_forked() || THREAD.get_or_init(|| None).is_none()
}

/// Wakes the reaper.
pub(crate) fn wake() {
    if let Some(thread) = start() {
        thread.unpark();
    }
}

/// As [`wake`], for destructors that the driver runs: starts nothing.
fn nudge() {
    if let Some(Some(thread)) = THREAD.get() {
        thread.unpark();
    }
}

/// Whether a drop may call the driver for something in this context.
pub(crate) fn may_call(context: &Context) -> bool {
    process::is_running() && context.lost().is_none()
}

/// Destroys an object: now, or on the reaper's thread where the driver does not permit it here.
pub(crate) fn destroy(context: &Context, object: Object) {
    destroy_with(context, object, None);
}

/// As [`destroy`], for an object that may use something until its end.
pub(crate) fn destroy_with(context: &Context, object: Object, keep: Option<Arc<dyn Any + Send + Sync>>) {
    if let Err(destruction) = try_destroy(Destruction { context: context.clone(), object, keep }) {
        expect_one();
        OBJECTS.push(Node::new(destruction));
        wake();
    }
}

/// Destroys an object, unless the driver does not permit the call on this thread now: then returns
/// it.
pub(crate) fn try_destroy(destruction: Destruction) -> Result<(), Destruction> {
    let context = &destruction.context;
    if !may_call(context) {
        return Ok(());
    }
    if destruction.object.may_run_destructors() && in_host_function::is_inside() {
        return Err(destruction);
    }
    let Some(_alone) = destruction.object.alone() else { return Err(destruction) };
    let (call, code) = call_destroy(context.driver(), destruction.object);
    if code == CUresult::CUDA_ERROR_NOT_PERMITTED {
        return Err(destruction);
    }
    if let Err(error) = context.check(call, code) {
        report(what(destruction.object), error);
    }
    Ok(())
}

/// Retries everything in a list. What the driver does not permit now stays in the list.
pub(crate) fn retry_all<T>(list: &List<T>, end: impl Fn(T) -> Result<(), T>) -> usize {
    retry_each(list.take(), list, end)
}

/// As [`retry_all`], for values that were taken out of the list.
pub(crate) fn retry_each<T>(
    taken: impl Iterator<Item = T>,
    list: &List<T>,
    end: impl Fn(T) -> Result<(), T>,
) -> usize {
    let (mut done, mut staying) = (0, Vec::new());
    for one in taken {
        match end(one) {
            Ok(()) => {
                one_done();
                done += 1;
            }
            Err(one) => staying.push(one),
        }
    }
    staying.into_iter().for_each(|one| list.push(Node::new(one)));
    done
}

/// Defers the destruction of an executable that would wait for all work of the device.
pub(crate) fn defer_destroy(context: &Context, object: Object, keep: Option<Arc<dyn Any + Send + Sync>>) {
    if !may_call(context) {
        return;
    }
    expect_one();
    DEFERRED.push(Node::new(Destruction { context: context.clone(), object, keep }));
}

/// Hands a payload to the reaper. The node is there already: no allocation, no lock, no driver
/// call.
pub(crate) fn push_payload(node: Box<Node<Arc<Payload>>>) {
    expect_one();
    PAYLOADS.push(node);
    nudge();
}

/// Lets the reaper drop a value whose destructor may be other code.
pub(crate) fn drop_later(value: impl Send + 'static) {
    start();
    push_payload(Node::new(Arc::new(Payload::new(Box::new(value)))));
}

/// Keeps an unused library until a drain.
pub(crate) fn push_library(unused: UnusedLibrary) {
    expect_one();
    LIBRARIES.push(Node::new(unused));
}
