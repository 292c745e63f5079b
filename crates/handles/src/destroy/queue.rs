//! The queue of the reaper, and the first attempt, which mostly makes waiting unnecessary.

use core::any::Any;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::Thread;
use std::time::Instant;

use cuda_sys::{
    CUevent_st, CUextSemaphore_st, CUgraph_st, CUgraphExec_st, CUlib_st, CUlinkState_st, CUmemPoolHandle_st,
    CUresult, CUstream_st, CUuserObject_st, Call, Driver,
};

use super::failure::report;
use super::list::{List, Node};
use super::{clones, failure};
use crate::context::{Context, capture_mode, in_host_function};
use crate::registry::Raw;
use crate::sync::{Lock, Rank, process};

/// A driver object that one call destroys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Object {
    Stream(Raw<CUstream_st>),
    Event(Raw<CUevent_st>),
    Graph(Raw<CUgraph_st>),
    GraphExec(Raw<CUgraphExec_st>),
    /// A pool whose memory is free, or was never freed: pending frees crash the driver.
    Pool(Raw<CUmemPoolHandle_st>),
    /// A reference to a user object.
    Share(Raw<CUuserObject_st>),
    /// A semaphore of another interface.
    Semaphore(Raw<CUextSemaphore_st>),
    /// A linker, with options that live as long.
    Link(Raw<CUlinkState_st>),
}

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

/// The value of a user object, until its destructor or its last handle releases it.
pub(crate) struct Payload {
    value: Lock<Option<Box<dyn Send>>>,
    /// Whether it is counted as a value that the driver has yet to give back.
    owed: AtomicBool,
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

/// When the driver last failed to end something that may have destructors.
static LAST_FAILED_DESTROY: Lock<Option<Instant>> = Lock::new(Rank::LastFailedDestroy, None);
static PENDING: AtomicUsize = AtomicUsize::new(0);
static STARTER: OnceLock<fn() -> Option<Thread>> = OnceLock::new();
static THREAD: OnceLock<Option<Thread>> = OnceLock::new();

/// The number of objects that wait to be freed, destroyed, released or unloaded, including those in
/// progress and those that the driver has yet to give back: an executable that was launched and
/// dropped counts until the driver has released it, some 100 µs after its last run. At 0,
/// everything that was dropped is released.
///
/// It does not count what the driver failed to destroy, which was reported to the
/// [hook](crate::reaper::set_hook), nor what other code keeps: graphs and executables that it made
/// from a lent graph.
#[must_use]
pub fn pending() -> usize {
    PENDING.load(Ordering::Acquire)
}

/// One more thing waits.
pub(crate) fn expect_one() {
    PENDING.fetch_add(1, Ordering::AcqRel);
}

/// One thing waits no more.
pub(crate) fn one_done() {
    PENDING.fetch_sub(1, Ordering::AcqRel);
}

/// Says how the reaper's thread is started, when it comes to that.
pub(crate) fn set_starter(starter: fn() -> Option<Thread>) {
    let _ = STARTER.set(starter);
}

/// Starts the reaper's thread, if that has not happened; where there can be none, things wait for
/// [`drain`](crate::reaper::drain).
pub(crate) fn start() -> Option<&'static Thread> {
    let starter = STARTER.get()?;
    THREAD.get_or_init(starter).as_ref()
}

/// Does without the reaper's thread, for hosts that allow none: everything then waits for
/// [`drain`](crate::reaper::drain), which such a host calls from time to time. Call it before the
/// library is used; it returns whether there is no thread. Once the thread runs it is too late.
#[must_use]
pub fn manual() -> bool {
    // A thread that is not there may have been about to start the reaper's, which is not there
    // either.
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
        if destruction.object.may_run_destructors() {
            *LAST_FAILED_DESTROY.lock() = Some(Instant::now());
        }
        report(what(destruction.object), error);
    }
    Ok(())
}

/// When the driver last failed to end something that may have destructors: they never run.
pub(crate) fn last_failed_destroy() -> Option<Instant> {
    *LAST_FAILED_DESTROY.lock()
}

impl Object {
    /// Whether its destruction may run destructors of user objects. The driver permits that inside
    /// a host function, but once it has run a destructor there, it permits every call on that
    /// thread from then on, even calls that wait forever.
    fn may_run_destructors(&self) -> bool {
        match self {
            Self::Graph(_) | Self::GraphExec(_) | Self::Share(_) => true,
            Self::Stream(_) | Self::Event(_) | Self::Pool(_) | Self::Semaphore(_) | Self::Link(_) => false,
        }
    }

    /// The lock that is held over its destruction; `None` if another thread has it for more than a
    /// moment.
    fn alone(&self) -> Option<Option<clones::Alone>> {
        match self {
            Self::Graph(_) => clones::alone_soon().map(Some),
            Self::Stream(_)
            | Self::Event(_)
            | Self::GraphExec(_)
            | Self::Pool(_)
            | Self::Share(_)
            | Self::Semaphore(_)
            | Self::Link(_) => Some(None),
        }
    }
}

fn call_destroy(driver: &'static Driver, object: Object) -> (Call, CUresult) {
    // SAFETY: the object is alive, it is ours, and this is the last use of it.
    unsafe {
        match object {
            Object::Stream(raw) => (Call::cuStreamDestroy, driver.cuStreamDestroy(raw.get())),
            Object::Event(raw) => (Call::cuEventDestroy, driver.cuEventDestroy(raw.get())),
            Object::Graph(raw) => (Call::cuGraphDestroy, driver.cuGraphDestroy(raw.get())),
            Object::GraphExec(raw) => {
                let _mode = capture_mode::relaxed(driver);
                (Call::cuGraphExecDestroy, driver.cuGraphExecDestroy(raw.get()))
            }
            Object::Pool(raw) => {
                let _mode = capture_mode::relaxed(driver);
                (Call::cuMemPoolDestroy, driver.cuMemPoolDestroy(raw.get()))
            }
            Object::Share(raw) => (Call::cuUserObjectRelease, driver.cuUserObjectRelease(raw.get(), 1)),
            Object::Semaphore(raw) => {
                let _mode = capture_mode::relaxed(driver);
                (Call::cuDestroyExternalSemaphore, driver.cuDestroyExternalSemaphore(raw.get()))
            }
            Object::Link(raw) => {
                let _mode = capture_mode::relaxed(driver);
                (Call::cuLinkDestroy, driver.cuLinkDestroy(raw.get()))
            }
        }
    }
}

fn what(object: Object) -> &'static str {
    match object {
        Object::Stream(_) => "destroying a stream",
        Object::Event(_) => "destroying an event",
        Object::Graph(_) => "destroying a graph",
        Object::GraphExec(_) => "destroying an executable graph",
        Object::Pool(_) => "destroying a memory pool",
        Object::Share(_) => "releasing a user object",
        Object::Semaphore(_) => "destroying an external semaphore",
        Object::Link(_) => "destroying a linker",
    }
}

impl Payload {
    pub(crate) fn new(value: Box<dyn Send>) -> Self {
        Self { value: Lock::new(Rank::Payload, Some(value)), owed: AtomicBool::new(false) }
    }

    /// Counts it until the driver's destructor has run, which it cannot have yet.
    pub(crate) fn owe(&self) {
        expect_one();
        self.owed.store(true, Ordering::Release);
    }

    pub(crate) fn is_owed(&self) -> bool {
        self.owed.load(Ordering::Acquire)
    }

    /// Whether it was owed. Its count is the caller's then.
    pub(crate) fn stop_owing(&self) -> bool {
        self.owed.swap(false, Ordering::AcqRel)
    }

    /// Whether it is not released yet; also true while another thread is releasing it.
    pub(crate) fn is_held(&self) -> bool {
        self.value.try_lock().is_none_or(|value| value.is_some())
    }

    /// Drops the value, unless that has happened. A panic in its drop is caught and reported.
    pub(crate) fn release(&self) {
        let value = self.value.lock().take();
        failure::dropping("dropping what a user object has", || drop(value));
    }
}

/// For a payload that no user object was made of.
impl Drop for Payload {
    fn drop(&mut self) {
        self.release();
    }
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
    let payload = Arc::clone(node.value());
    PAYLOADS.push(node);
    // After the push, so that a thread that asks finds the value owed or in the list.
    if payload.stop_owing() {
        one_done();
    }
    nudge();
}

/// Lets the reaper drop a value that may be anybody's.
pub(crate) fn drop_later(value: impl Send + 'static) {
    start();
    push_payload(Node::new(Arc::new(Payload::new(Box::new(value)))));
}

/// Keeps an unused library until a drain.
pub(crate) fn push_library(unused: UnusedLibrary) {
    expect_one();
    LIBRARIES.push(Node::new(unused));
}
