//! Which captures are open, and which streams are in each.
//!
//! A capture is a state of the stream: a number in its [`RawStream`], 0 for none. Beginning a
//! capture sets the number, a wait for an event recorded in the capture draws the waiting stream
//! in, and the end clears it everywhere. Every change is made with exclusive access, so a thread
//! that enqueues knows whether its call is captured. Numbers are never used again.
//!
//! The table of open captures is locked for moments, never over a driver call, which may be waiting
//! for a host function that needs the table. A stream is entered before the call that draws it in,
//! and removed again if the call fails. Exclusive access is held meanwhile, and a capture ends with
//! exclusive access of all its streams, so none ends while a stream joins it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cuda_sys::CUresult;

use super::recorded::Recorded;
use crate::context::{Busy, Context, unless_inside};
use crate::error::{Cause, Error, Result};
use crate::raw_stream::{CaptureLog, RawStream};
use crate::sync::{Lock, LockGuard, Rank};

struct OpenCapture {
    word: u64,
    context: Context,
    /// Its streams, and streams that are joining. They live until its end, whatever becomes of
    /// their handles.
    members: Vec<Arc<RawStream>>,
    /// What it notes about its calls.
    log: CaptureLog,
    /// The first call of this library in it that the driver has refused.
    fault: Option<Cause>,
    /// No stream joins any more.
    ending: bool,
}

static OPEN: Lock<Vec<OpenCapture>> = Lock::new(Rank::OpenCaptures, Vec::new());

/// Not over a driver call, and no owner is dropped under it.
fn open() -> LockGuard<'static, Vec<OpenCapture>> {
    OPEN.lock()
}

/// Takes a capture out of the table.
fn take(word: u64) -> Option<OpenCapture> {
    let mut open = open();
    let index = open.iter().position(|capture| capture.word == word)?;
    Some(open.swap_remove(index))
}

/// Whether a stream of the context is in a capture of this library.
pub(crate) fn any_in(context: &Context) -> bool {
    open().iter().any(|capture| capture.context.as_raw() == context.as_raw())
}

/// How many streams are in a capture that is not ending, the first one included.
pub(crate) fn size(word: u64) -> usize {
    let open = open();
    let found = open.iter().find(|capture| capture.word == word && !capture.ending);
    found.map_or(0, |capture| capture.members.len())
}

/// The stream on which an open capture began.
pub(crate) fn origin(word: u64) -> Option<Arc<RawStream>> {
    let open = open();
    let capture = open.iter().find(|capture| capture.word == word)?;
    capture.members.first().cloned()
}

impl OpenCapture {
    /// Notes a call that the driver has refused, unless there was one before, or the refusal says
    /// that the capture was invalid already.
    fn note(&mut self, fault: Cause) {
        if fault.code != CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED {
            self.fault.get_or_insert(fault);
        }
    }
}

/// Notes a call in a capture that the driver has refused.
#[cold]
pub(crate) fn note_fault(word: u64, fault: Cause) {
    let mut open = open();
    if let Some(capture) = open.iter_mut().find(|capture| capture.word == word) {
        capture.note(fault);
    }
}

/// As [`note_fault`], for a call on a stream whose result is there already.
#[inline]
pub(crate) fn note_failure<R>(stream: &RawStream, result: Result<R>) -> Result<R> {
    if let Err(Error::Driver { call, code }) = result
        && stream.capture() != 0
    {
        note_fault(stream.capture(), Cause { call, code });
    }
    result
}

/// Begins a capture with a stream as its first one; `call` begins it in the driver.
pub(crate) fn begin(
    stream: &Arc<RawStream>,
    log: CaptureLog,
    call: impl FnOnce() -> Result<()>,
) -> Result<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let _entering = stream.insist(|| stream.try_enter())?;
    stream.refuse_capture("beginning another capture")?;
    let word = NEXT.fetch_add(1, Ordering::Relaxed);
    let entry = OpenCapture {
        word,
        context: stream.context().clone(),
        members: vec![Arc::clone(stream)],
        log: Arc::clone(&log),
        fault: None,
        ending: false,
    };
    open().push(entry);
    if let Err(error) = call() {
        drop(take(word));
        return Err(error);
    }
    // SAFETY: exclusive access is held.
    unsafe { stream.enter_capture(word, log) };
    Ok(word)
}

/// Lets `call` make the stream wait for an event; an event of a capture draws the stream into it.
/// Refuses waits that the driver would answer by invalidating a capture.
///
/// `None` if other threads are using a stream that would be drawn in, perhaps for long: the call
/// had no effect, and the caller tries again once it has released what it holds
/// ([`RawStream::insist`]).
pub(crate) fn wait(
    stream: &Arc<RawStream>,
    recorded: Recorded,
    call: impl FnOnce() -> Result<()>,
) -> Result<Option<()>> {
    let word = match recorded {
        Recorded::Captured(word) => word,
        Recorded::Unknown | Recorded::Foreign => return wait_unsure(stream, recorded, call),
        Recorded::Never | Recorded::Plain => {
            let _access = stream.enqueue()?;
            if recorded == Recorded::Plain && stream.is_capturing()? {
                return Err(Error::Isolated);
            }
            return call().map(Some);
        }
    };
    {
        let _access = stream.enqueue()?;
        if stream.capture() == word {
            return note_failure(stream, call()).map(Some);
        }
    }
    try_join(stream, word, call)
}

/// A wait that may draw the stream into a capture of other code. Other threads that enqueue on it
/// next have to know that: the driver is asked from before the wait on, unless it says afterwards
/// that the stream is not capturing.
fn wait_unsure(
    stream: &Arc<RawStream>,
    recorded: Recorded,
    call: impl FnOnce() -> Result<()>,
) -> Result<Option<()>> {
    {
        let _access = stream.enqueue()?;
        match stream.capture() {
            0 if stream.is_foreign() => return call().map(Some),
            0 => {}
            _ if recorded == Recorded::Foreign => return Err(Error::Isolated),
            _ => return note_failure(stream, call()).map(Some),
        }
    }
    let Some(_entering) = stream.try_enter() else { return Ok(None) };
    if stream.capture() != 0 {
        // Another thread has just drawn it into a capture of this library.
        return Ok(None);
    }
    stream.suspect();
    call()?;
    if let Ok(false) = stream.ask_capturing() {
        stream.trust();
    }
    Ok(Some(()))
}

fn try_join(stream: &Arc<RawStream>, word: u64, call: impl FnOnce() -> Result<()>) -> Result<Option<()>> {
    // No thread need wait for the stream to hear this.
    if size(word) == 0 {
        return Err(Error::CapturedEvent);
    }
    let Some(_entering) = stream.try_enter() else { return Ok(None) };
    match stream.capture() {
        // A capture of other code.
        0 if stream.is_capturing()? => return Err(Error::Merge),
        0 => {}
        same if same == word => return note_failure(stream, call()).map(Some),
        _ => return Err(Error::Merge),
    }
    let Some(log) = enter(word, stream) else { return Err(Error::CapturedEvent) };
    if let Err(error) = call() {
        leave(word, stream, &error);
        return Err(error);
    }
    // SAFETY: exclusive access is held.
    unsafe { stream.enter_capture(word, log) };
    Ok(Some(()))
}

/// Enters a stream to which the caller has exclusive access; returns the capture's log. `None` if
/// the capture is over, or about to end.
fn enter(word: u64, stream: &Arc<RawStream>) -> Option<CaptureLog> {
    let mut open = open();
    let capture = open.iter_mut().find(|capture| capture.word == word && !capture.ending)?;
    capture.members.push(Arc::clone(stream));
    Some(Arc::clone(&capture.log))
}

/// Reverts [`enter`] because of an error, still with exclusive access.
fn leave(word: u64, stream: &Arc<RawStream>, error: &Error) {
    let mut open = open();
    if let Some(capture) = open.iter_mut().find(|capture| capture.word == word) {
        if let Error::Driver { call, code } = *error {
            capture.note(Cause { call, code });
        }
        // The caller has another reference.
        capture.members.retain(|member| member.id() != stream.id());
    }
}

/// Lets no more streams join a capture, and returns its streams and those that are joining, which
/// may yet fail.
fn end_soon(word: u64) -> Option<Vec<Arc<RawStream>>> {
    let mut open = open();
    let capture = open.iter_mut().find(|capture| capture.word == word)?;
    capture.ending = true;
    Some(capture.members.clone())
}

/// A capture that is over.
pub(crate) struct Ended<R> {
    /// The driver's answer.
    pub(crate) result: R,
    /// The capture's log. No other reference is left.
    pub(crate) log: CaptureLog,
    /// The first call of this library in it that the driver has refused.
    pub(crate) fault: Option<Cause>,
    /// The numbers of its streams, the first one included.
    pub(crate) streams: Box<[u64]>,
    /// The contexts of its streams beside the first one's.
    pub(crate) others: Vec<Context>,
}

/// Ends a capture. `call` ends it in the driver; whatever it answers, the streams are in no capture
/// of this library afterwards. If it also says that the driver did not end it, the driver is asked
/// from now on. Waits for threads with access of one of the streams.
///
/// # Errors
/// There is no such capture ([`Discarded`](crate::Error::Discarded)). Inside a host function, one
/// of the streams is in use (`NOT_PERMITTED`). One is in use all the time
/// ([`Busy`](crate::Error::Busy)). The only effect is that no more streams join.
pub(crate) fn end<R>(context: &Context, word: u64, call: impl FnOnce() -> (R, bool)) -> Result<Ended<R>> {
    let mut call = Some(call);
    unless_inside(
        context,
        || in_the_way(word),
        || match try_end(word, call.take()?) {
            Ok(result) => Some(result),
            Err(later) => {
                call = Some(later);
                None
            }
        },
    )?
}

/// The users of a stream of a capture, for errors.
#[cold]
fn in_the_way(word: u64) -> Busy {
    let members = end_soon(word).unwrap_or_default();
    let used = members.iter().find(|stream| RawStream::try_leave(core::slice::from_ref(*stream)).is_none());
    used.or(members.first()).map_or_else(
        || Busy { what: "a capture".into(), by: "a call that has ended it just now".into() },
        |stream| stream.used(),
    )
}

/// As [`end`], unless another thread has access of one of the streams: then returns the closure.
pub(crate) fn try_end<R, C: FnOnce() -> (R, bool)>(
    word: u64,
    call: C,
) -> core::result::Result<Result<Ended<R>>, C> {
    let Some(members) = end_soon(word) else { return Ok(Err(Error::Discarded)) };
    let Some(alone) = RawStream::try_leave(&members) else { return Err(call) };
    // Another thread may have ended it just now. From here on, none can.
    if origin(word).is_none() {
        return Ok(Err(Error::Discarded));
    }
    let (result, still_capturing) = call();
    // Streams that could not join have left it.
    let Some(OpenCapture { log, fault, members: left, .. }) = take(word) else {
        return Ok(Err(Error::Discarded));
    };
    for member in &left {
        if still_capturing {
            member.set_foreign();
        }
        // SAFETY: exclusive access is held.
        unsafe { member.leave_capture() };
    }
    let streams = left.iter().map(|member| member.id()).collect();
    let others = contexts_beside_first(&left);
    drop(alone);
    Ok(Ok(Ended { result, log, fault, streams, others }))
}

/// The contexts of streams beside the first one's, each once.
fn contexts_beside_first(streams: &[Arc<RawStream>]) -> Vec<Context> {
    let mut others: Vec<Context> = Vec::new();
    let Some((first, rest)) = streams.split_first() else { return others };
    for context in rest.iter().map(|stream| stream.context()) {
        if !context.is_same(first.context()) && !others.iter().any(|known| known.is_same(context)) {
            others.push(context.clone());
        }
    }
    others
}
