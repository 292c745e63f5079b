//! Captures in progress: begun on a stream, ended by their owner.

use core::cell::RefCell;
use core::marker::PhantomData;
use std::sync::Arc;

use cuda_sys::{CUgraph, CUresult, Call};

use super::book::Book;
use super::captured_memory;
use super::log::Log;
use super::mode::CaptureMode;
use super::options::CaptureOptions;
use super::records::Records;
use super::scratch::Scratch;
use crate::context::Context;
use crate::destroy::{Kept, attempt};
use crate::error::{Cause, Error, Result};
use crate::graph::{GraphHandle, Owner};
use crate::raw_stream::{CaptureLog, RawStream};
use crate::stream::{AsStream, Stream, open_captures};
use crate::sync::process;

impl Stream {
    /// Begins to capture the work that is enqueued on this stream, through whichever clone and on
    /// whichever thread, and on streams that wait for events of the capture. [`ActiveCapture::end`]
    /// ends the capture; dropping the result ends it and discards what was captured.
    ///
    /// The capture begins once no thread waits on the host for the stream. Waits that would begin
    /// in the meantime let the capture go first.
    ///
    /// Calls `cuStreamBeginCapture` (CUDA 10.1).
    ///
    /// # Errors
    /// The stream is capturing already ([`Capturing`](crate::Error::Capturing)). Inside a host
    /// function, another thread uses the stream, which may be waiting for that function
    /// (`NOT_PERMITTED`). Other threads used the stream all the time, or an `Enqueue` guard was
    /// forgotten ([`Busy`](crate::Error::Busy) names the threads). The driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuStreamBeginCapture")]
    #[doc(alias = "cudaStreamBeginCapture")]
    pub fn begin_capture(&self, mode: CaptureMode) -> Result<ActiveCapture> {
        self.begin_capture_with(&mode.into())
    }

    /// As [`begin_capture`](Self::begin_capture), with options.
    ///
    /// Calls `cuStreamBeginCapture` (CUDA 10.1).
    ///
    /// # Errors
    /// As [`begin_capture`](Self::begin_capture). The scratch memory is of another context
    /// ([`WrongContext`](crate::Error::WrongContext)).
    #[doc(alias = "cuStreamBeginCapture")]
    #[doc(alias = "cudaStreamBeginCapture")]
    pub fn begin_capture_with(&self, options: &CaptureOptions) -> Result<ActiveCapture> {
        let context = self.context();
        context.ensure_usable()?;
        if let Some(scratch) = options.shared_scratch() {
            context.ensure_same(scratch.context(), "the scratch memory")?;
        }
        let call = || {
            // SAFETY: the stream is alive.
            let code = unsafe { context.driver().cuStreamBeginCapture(self.as_raw(), options.raw_mode()) };
            context.check(Call::cuStreamBeginCapture, code)
        };
        let word = open_captures::begin(self.raw_stream(), Arc::new(Log::new()), call)?;
        captured_memory::begin(word, options.shared_scratch());
        Ok(ActiveCapture { origin: self.clone(), word, kept: RefCell::default(), _thread: PhantomData })
    }
}

/// The result of a capture.
#[derive(Debug)]
pub struct Captured {
    /// The graph.
    pub graph: GraphHandle,
    /// A record of each captured call, with the owners of everything that the nodes use. The owners
    /// have to live as long as the graph and whatever is made from it.
    pub records: Records,
    /// The memory that the graph shares with the graphs of other captures, if it has used some: its
    /// launches are in one line with theirs. It is among the owners.
    pub scratch: Option<Scratch>,
    /// The contexts of the streams that took part, beside that of the first one.
    pub others: Vec<Context>,
}

/// A capture going on. It belongs to the thread that began it.
#[derive(Debug)]
#[must_use = "dropping it ends the capture and throws away what was captured"]
pub struct ActiveCapture {
    origin: Stream,
    /// 0 once it is over.
    word: u64,
    /// Owners of the capture as a whole.
    kept: RefCell<Vec<Owner>>,
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
        // In a forked child the table may be locked forever.
        if process::is_forked() { 0 } else { open_captures::size(self.word) }
    }

    /// Lets the graph own something more. In a forked child, where there will be no graph, it is
    /// dropped.
    pub fn keep(&self, owner: impl Into<Owner>) {
        let owner = owner.into();
        if !process::is_forked() {
            self.kept.borrow_mut().push(owner);
        }
    }

    /// Ends it. Whatever the driver answers, no stream is in the capture afterwards, and all of
    /// them can be used.
    ///
    /// Calls `cuStreamEndCapture` (CUDA 10.0).
    ///
    /// # Errors
    /// A call during the capture has invalidated it
    /// ([`CaptureInvalidated`](crate::Error::CaptureInvalidated) names the first one of this
    /// library that the driver has refused); a stream that takes part was not waited for
    /// ([`CaptureUnjoined`](crate::Error::CaptureUnjoined)); it was ended by
    /// [`Stream::discard_capture`] ([`Discarded`](crate::Error::Discarded)); or the driver refuses
    /// the call ([`Driver`](crate::Error::Driver)). The captured work is discarded.
    ///
    /// Inside a host function, another thread is enqueuing on a stream that takes part and does not
    /// return (`NOT_PERMITTED`): the driver may have that thread wait for the function. The
    /// captured work is discarded, and the reaper ends the capture once the streams are free. The
    /// same holds for a drop inside a host function.
    #[doc(alias = "cuStreamEndCapture")]
    #[doc(alias = "cudaStreamEndCapture")]
    pub fn end(mut self) -> Result<Captured> {
        process::ensure_not_forked()?;
        self.finish()
    }

    fn finish(&mut self) -> Result<Captured> {
        let word = core::mem::take(&mut self.word);
        let (origin, mut kept) = (self.origin.raw_stream(), self.kept.take());
        match open_captures::end(self.origin.context(), word, || end_in_driver(origin)) {
            Ok(ended) => {
                let (memory, scratch) = captured_memory::end(word);
                kept.extend(memory);
                let records = Records::new(book(ended.log), kept);
                match ended.result {
                    Ok(raw) => {
                        Ok(Captured { graph: own(origin, raw), records, scratch, others: ended.others })
                    }
                    Err(error) => Err(why(error, ended.fault, &ended.streams)),
                }
            }
            Err(Error::Discarded) => Err(Error::Discarded),
            Err(refusal) => {
                end_later(Arc::clone(origin), word, kept);
                Err(refusal)
            }
        }
    }
}

/// The book of a capture that is over.
pub(super) fn book(log: CaptureLog) -> Book {
    let log = log.downcast().ok().and_then(Arc::<Log>::into_inner);
    log.map(Log::into_book).unwrap_or_default()
}

/// The error of a capture that ended without a graph.
#[cold]
fn why(error: Error, fault: Option<Cause>, streams: &[u64]) -> Error {
    match error {
        Error::Driver { code: CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, .. } => {
            Error::CaptureInvalidated { by: fault }
        }
        Error::Driver { code: CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED, .. } => {
            let (origin, others) =
                streams.split_first().map_or((0, &[][..]), |(origin, others)| (*origin, others));
            Error::CaptureUnjoined { origin, others: others.into() }
        }
        other => other,
    }
}

/// The graph that the driver has just handed over.
pub(super) fn own(origin: &RawStream, raw: CUgraph) -> GraphHandle {
    // SAFETY: the graph is new and has no other owner.
    unsafe { GraphHandle::from_raw_owned(origin.context(), raw) }
}

/// Lets the reaper end a capture and discard the captured work. By the driver's rules another
/// thread may end a capture that belongs to this one: it fails, but the capture is over.
fn end_later(origin: Arc<RawStream>, word: u64, kept: Vec<Owner>) {
    let mut kept = Some(kept);
    attempt(Box::new(move || {
        let ended = open_captures::try_end(word, || end_in_driver(&origin)).ok()?;
        let mut kept = kept.take().unwrap_or_default();
        let Ok(ended) = ended else { return Some(Kept::new(kept)) };
        kept.extend(captured_memory::end(word).0);
        if let Ok(raw) = ended.result {
            drop(own(&origin, raw));
        }
        Some(Kept::new(Records::new(book(ended.log), kept)))
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
            // In a forked child the locks may be held forever.
            if process::is_forked() {
                return;
            }
            // First the graph, then its owners.
            drop(self.finish());
        }
    }
}

/// The driver's end of a capture, and whether it goes on all the same.
pub(super) fn end_in_driver(origin: &RawStream) -> (Result<CUgraph>, bool) {
    let context = origin.context();
    if let Err(error) = context.ensure_usable() {
        return (Err(error), false);
    }
    let end = || {
        let mut graph = core::ptr::null_mut::<cuda_sys::CUgraph_st>();
        // SAFETY: the stream is alive and the out pointer valid.
        let code = unsafe { context.driver().cuStreamEndCapture(origin.raw(), &raw mut graph) };
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
            let goes_on = || origin.ask_capturing().unwrap_or(false);
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
