//! Capturing the work of streams, the low-level part: beginning, ending, and keeping what captured
//! calls use.
//!
//! A stream that is capturing enqueues nothing: its calls become nodes of a graph that runs later,
//! any number of times. So whoever enqueues holds an [`Enqueue`] over the driver call and, if that
//! says so, gives the capture the owners of everything the call uses. cuda-graph builds its
//! captures on this; other code has no need for it.

use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use cuda_sys::{CUgraph, CUresult, CUstreamCaptureMode, CUstreamCaptureStatus, Call};

use crate::brief::Brief;
use crate::captures;
use crate::error::{Error, Result};
use crate::graph::GraphHandle;
use crate::kept::Kept;
use crate::kernel::Kernel;
use crate::memory::Allocation;
use crate::owner::Owner;
use crate::process;
use crate::reaper::{self, CAPTURED, Shared};
use crate::stream::{AsStream, Stream};
use crate::user_object::UserObject;

/// Whose unrelated calls a capture forbids, since they might be meant to be captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CaptureMode {
    /// Those of every thread. This library makes its own calls in a way that does no harm; others
    /// may not.
    Global,
    /// Those of the thread that began the capture.
    #[default]
    ThreadLocal,
    /// Nobody's.
    Relaxed,
}

impl CaptureMode {
    fn raw(self) -> CUstreamCaptureMode {
        match self {
            Self::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            Self::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Self::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        }
    }
}

/// What the calls of each open capture use, by the capture's number.
static KEPT: Brief<Vec<(u64, Vec<Owner>)>> = Brief::new(Vec::new());

/// Among how many of the owners kept last one is looked for, so that what is used again and again
/// is kept once.
const RECENT: usize = 8;

/// Lets `give` keep things for a capture that is not over.
#[inline]
fn keep_for(word: u64, give: impl FnOnce(&mut Keeper<'_>)) {
    // There the table may be locked for ever.
    if process::is_forked() {
        return;
    }
    // Not under the lock: `give` may be anybody's code.
    let mut taken = Taken { word, owners: take_for_now(word) };
    give(&mut Keeper { owners: &mut taken.owners });
}

/// The owners of a capture while somebody adds some.
struct Taken {
    word: u64,
    owners: Vec<Owner>,
}

fn take_for_now(word: u64) -> Vec<Owner> {
    let mut kept = KEPT.lock();
    let found = kept.iter_mut().find(|(other, _)| *other == word);
    found.map(|(_, owners)| core::mem::take(owners)).unwrap_or_default()
}

/// Whatever came of it, they are kept again, with those that others have added meanwhile.
impl Drop for Taken {
    fn drop(&mut self) {
        let mut kept = KEPT.lock();
        if let Some((_, owners)) = kept.iter_mut().find(|(other, _)| *other == self.word) {
            if !owners.is_empty() {
                self.owners.append(owners);
            }
            // What the capture had is empty: nothing is dropped under the lock.
            core::mem::swap(owners, &mut self.owners);
        }
    }
}

fn take_kept(word: u64) -> Vec<Owner> {
    let mut kept = KEPT.lock();
    let index = kept.iter().position(|(other, _)| *other == word);
    index.map(|index| kept.swap_remove(index).1).unwrap_or_default()
}

/// Takes what a captured call uses; see [`Enqueue::keep_with`].
#[derive(Debug)]
pub struct Keeper<'k> {
    owners: &'k mut Vec<Owner>,
}

impl Keeper<'_> {
    /// Keeps a kernel.
    #[inline]
    pub fn kernel(&mut self, kernel: &Kernel) {
        if !self.has_recently(|owner| matches!(owner, Owner::Kernel(kept) if kept == kernel)) {
            self.owners.push(Owner::Kernel(kernel.clone()));
        }
    }

    /// Keeps memory.
    #[inline]
    pub fn allocation(&mut self, allocation: &Arc<Allocation>) {
        let is_it = |owner: &Owner| matches!(owner, Owner::Allocation(kept) if Arc::ptr_eq(kept, allocation));
        if !self.has_recently(is_it) {
            self.owners.push(Owner::Allocation(Arc::clone(allocation)));
        }
    }

    #[inline]
    fn has_recently(&self, is_it: impl FnMut(&Owner) -> bool) -> bool {
        self.owners.iter().rev().take(RECENT).any(is_it)
    }
}

impl Stream {
    /// Begins to capture what is enqueued on this stream, by whomever and through whichever clone,
    /// and on streams that wait for events of the capture. It ends with [`ActiveCapture::end`];
    /// dropping the result ends it and throws away what was captured.
    ///
    /// It begins once nobody waits for the stream any more; waits that would begin meanwhile let it
    /// go first.
    ///
    /// Stands on `cuStreamBeginCapture`, CUDA 10.1.
    ///
    /// # Errors
    /// The stream is capturing already; or this is a host function and somebody uses the stream
    /// (`NOT_PERMITTED`), who may be waiting for that very function; or somebody used it all the
    /// time, by a wait or a turn that was forgotten ([`Error::Busy`] names the threads); or what
    /// the driver answers.
    #[doc(alias = "cuStreamBeginCapture")]
    pub fn begin_capture(&self, mode: CaptureMode) -> Result<ActiveCapture> {
        let context = self.context();
        context.ensure_usable()?;
        let call = || {
            // SAFETY: the stream is alive.
            let code = unsafe { context.driver().cuStreamBeginCapture(self.as_raw(), mode.raw()) };
            context.check(Call::cuStreamBeginCapture, code)
        };
        KEPT.lock().reserve(1);
        let ready = |word| KEPT.lock().push((word, Vec::new()));
        let word = captures::begin(self.raw_stream(), ready, call)?;
        Ok(ActiveCapture { origin: self.clone(), word, _thread: PhantomData })
    }

    /// The right to enqueue on this stream by a driver call of one's own, to be held over the call:
    /// no capture of this library begins or ends here meanwhile. Hold one at a time on a thread,
    /// and while it is held make no other call of this library but [`Enqueue::is_captured`] and
    /// [`Enqueue::keep`]: others may want the stream for themselves. They wait as long as calls are
    /// [patient](crate::patience) and then fail with [`Error::Busy`]; so they do for good where the
    /// result is forgotten.
    ///
    /// # Errors
    /// The context is lost, or the process is a forked child; or this is a host function, and
    /// another thread lets the stream enter or leave a capture (`NOT_PERMITTED`): the driver may
    /// have that thread wait for the function. Elsewhere, [`Error::Busy`] if the driver keeps that
    /// thread for too long.
    // Inlined always: what it gives, written to memory and read back at once in other pieces, would
    // take longer than all it does.
    #[inline(always)]
    pub fn enqueue(&self) -> Result<Enqueue<'_>> {
        self.context().ensure_usable()?;
        Ok(Enqueue { stream: self, turn: self.raw_stream().enqueue()? })
    }

    /// The number of the capture that the stream is in, if it is one that this library began.
    /// Numbers are never used again. One load.
    #[must_use]
    #[inline]
    pub fn capture_id(&self) -> Option<u64> {
        Some(self.raw_stream().capture()).filter(|&word| word != 0)
    }
}

/// The right to enqueue on a stream; see [`Stream::enqueue`].
pub struct Enqueue<'s> {
    stream: &'s Stream,
    turn: Shared<'s>,
}

impl<'s> Enqueue<'s> {
    /// The stream.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &'s Stream {
        self.stream
    }

    /// Whether a call made now is captured. No driver call unless the stream is adopted or was
    /// reached by a capture of somebody else.
    ///
    /// Stands on `cuStreamIsCapturing`, CUDA 10.0, for such streams.
    ///
    /// # Errors
    /// What the driver answers.
    #[inline]
    pub fn is_captured(&self) -> Result<bool> {
        match self.turn.signs() {
            0 => Ok(false),
            signs if signs & CAPTURED != 0 => Ok(true),
            _ => self.stream.raw_stream().is_capturing(),
        }
    }

    /// Gives the capture an owner of something that the call uses: it lives as long as the graph
    /// that comes of it and what is made of that. Does nothing on a stream that is not capturing.
    /// Call this **before** the driver call that uses it.
    ///
    /// A capture that somebody else began gets a user object: `cuStreamGetCaptureInfo` and
    /// `cuGraphRetainUserObject`, CUDA 11.3.
    ///
    /// # Errors
    /// For a capture of somebody else, what the driver answers.
    #[doc(alias = "cuStreamGetCaptureInfo")]
    pub fn keep(&self, owner: impl Into<Owner>) -> Result<()> {
        let owner = owner.into();
        match self.stream.capture_id() {
            Some(word) => keep_for(word, |keeper| keeper.owners.push(owner)),
            None if self.is_captured()? => self.keep_foreign(owner)?,
            None => {}
        }
        Ok(())
    }

    /// As [`keep`](Self::keep) for several things at once, for the crates above this one: `give`
    /// runs under the lock of all that captures keep, so it hands them over and makes no other call
    /// of this library.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    #[doc(hidden)]
    #[inline]
    pub fn keep_with(&self, give: impl FnOnce(&mut Keeper<'_>)) -> Result<()> {
        match self.stream.capture_id() {
            Some(word) => keep_for(word, give),
            None if self.is_captured()? => return self.keep_with_foreign(give),
            None => {}
        }
        Ok(())
    }

    fn keep_with_foreign(&self, give: impl FnOnce(&mut Keeper<'_>)) -> Result<()> {
        let mut owners = Vec::new();
        give(&mut Keeper { owners: &mut owners });
        owners.into_iter().try_for_each(|owner| self.keep_foreign(owner))
    }

    fn keep_foreign(&self, owner: Owner) -> Result<()> {
        let context = self.stream.context();
        let Some(graph) = foreign_graph(self.stream)? else { return Ok(()) };
        // SAFETY: the graph of a capture going on, which the caller's turn lets nobody end here.
        let graph = unsafe { GraphHandle::from_raw(context, graph) }?;
        UserObject::new(context, Box::new(owner))?.retain_on(&graph)
    }
}

impl fmt::Debug for Enqueue<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Enqueue")
            .field("stream", self.stream)
            .field("capture", &self.stream.capture_id())
            .finish()
    }
}

/// The graph into which somebody else captures; `None` if that capture is invalid, so that nothing
/// will come of it.
fn foreign_graph(stream: &Stream) -> Result<Option<CUgraph>> {
    let context = stream.context();
    let (mut status, mut graph) =
        (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE, core::ptr::null_mut::<cuda_sys::CUgraph_st>());
    let (mut id, mut count) = (0, 0);
    // SAFETY: the stream is alive and the out pointers are valid; what may be null is.
    let code = unsafe {
        let driver = context.driver();
        driver.cuStreamGetCaptureInfo(
            stream.as_raw(),
            &raw mut status,
            &raw mut id,
            &raw mut graph,
            core::ptr::null_mut(),
            &raw mut count,
        )
    };
    context.check(Call::cuStreamGetCaptureInfo, code)?;
    Ok(Some(graph).filter(|_| status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE))
}

/// What a capture became.
#[derive(Debug)]
pub struct Captured {
    /// The graph.
    pub graph: GraphHandle,
    /// The owners of what its nodes use: they have to live as long as the graph and everything made
    /// of it.
    pub owners: Vec<Owner>,
}

/// A capture going on. It belongs to the thread that began it.
#[derive(Debug)]
#[must_use = "dropping it ends the capture and throws away what was captured"]
pub struct ActiveCapture {
    origin: Stream,
    /// 0 once it is over.
    word: u64,
    _thread: PhantomData<*mut ()>,
}

impl ActiveCapture {
    /// The stream on which it was begun.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.origin
    }

    /// Its number, never used again.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.word
    }

    /// How many streams take part, the first one included; 0 in a forked child, where nothing is
    /// captured.
    #[must_use]
    pub fn streams(&self) -> usize {
        // The table may be locked for ever there.
        if process::is_forked() { 0 } else { captures::size(self.word) }
    }

    /// Lets the graph own something more. In a forked child, where there will be no graph, it is
    /// dropped.
    pub fn keep(&self, owner: impl Into<Owner>) {
        let owner = owner.into();
        keep_for(self.word, |keeper| keeper.owners.push(owner));
    }

    /// Ends it. Whatever the driver answers, no stream is in the capture afterwards, and all of
    /// them can be used.
    ///
    /// Stands on `cuStreamEndCapture`, CUDA 10.0.
    ///
    /// # Errors
    /// A call during the capture has invalidated it; a stream that takes part was not waited for;
    /// or what else the driver answers. What was captured is thrown away then.
    ///
    /// This is a host function, and another thread is enqueuing on a stream that takes part and
    /// does not return (`NOT_PERMITTED`): the driver may have that thread wait for the function.
    /// What was captured is thrown away, and the reaper ends the capture once the streams are free.
    /// This also holds for a drop there.
    #[doc(alias = "cuStreamEndCapture")]
    pub fn end(mut self) -> Result<Captured> {
        process::ensure_not_forked()?;
        self.finish()
    }

    fn finish(&mut self) -> Result<Captured> {
        let word = core::mem::take(&mut self.word);
        let mut owners = Vec::new();
        let over = || owners = take_kept(word);
        match captures::end(self.origin.context(), word, || end_in_driver(&self.origin), over) {
            Ok(raw) => Ok(Captured { graph: own(&self.origin, raw?), owners }),
            Err(refusal) => {
                end_later(self.origin.clone(), word);
                Err(refusal)
            }
        }
    }
}

/// The graph that the driver has just handed over.
fn own(origin: &Stream, raw: CUgraph) -> GraphHandle {
    // SAFETY: nobody else knows it.
    unsafe { GraphHandle::from_raw_owned(origin.context(), raw) }
}

/// Lets the reaper end a capture and throw away what was captured. By the driver's rules a capture
/// that belongs to a thread is over, too, when another thread ends it.
fn end_later(origin: Stream, word: u64) {
    reaper::attempt(Box::new(move || {
        let mut owners = Vec::new();
        let ended = captures::try_end(word, || end_in_driver(&origin), || owners = take_kept(word)).ok()?;
        if let Ok(Ok(raw)) = ended {
            drop(own(&origin, raw));
        }
        Some(Kept::new(owners))
    }));
}

impl AsStream for ActiveCapture {
    fn as_stream(&self) -> &Stream {
        &self.origin
    }
}

impl Drop for ActiveCapture {
    fn drop(&mut self) {
        if self.word != 0 {
            // In a forked child the locks may be held for ever.
            if process::is_forked() {
                return;
            }
            if let Ok(Captured { graph, owners }) = self.finish() {
                // In this order.
                drop(graph);
                drop(owners);
            }
        }
    }
}

/// The driver's end of a capture, and whether it goes on all the same.
fn end_in_driver(origin: &Stream) -> (Result<CUgraph>, bool) {
    let context = origin.context();
    if let Err(error) = context.ensure_usable() {
        return (Err(error), false);
    }
    let end = || {
        let mut graph = core::ptr::null_mut::<cuda_sys::CUgraph_st>();
        // SAFETY: the stream is alive and the out pointer valid.
        let code = unsafe { context.driver().cuStreamEndCapture(origin.as_raw(), &raw mut graph) };
        (context.check(Call::cuStreamEndCapture, code), graph)
    };
    match end() {
        (Ok(()), graph) if !graph.is_null() => (Ok(graph), false),
        (Ok(()), _) => {
            let code = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
            (Err(Error::Driver { call: Call::cuStreamEndCapture, code }), false)
        }
        (Err(error), _) => {
            // Mostly it is over; a call that the driver did not even begin is worth a second try.
            let goes_on = || origin.raw_stream().ask_capturing().unwrap_or(false);
            if goes_on()
                && let (Ok(()), graph) = end()
                && !graph.is_null()
            {
                // SAFETY: the graph is ours and unused.
                drop(unsafe { GraphHandle::from_raw_owned(context, graph) });
            }
            (Err(error), goes_on())
        }
    }
}
