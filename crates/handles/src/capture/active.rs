//! Captures in progress: begun on a stream, ended by their owner.

use core::marker::PhantomData;

use cuda_sys::{CUgraph, CUresult, Call};

use super::captured_memory;
use super::keeper::{self, keep_for, take_kept};
use super::mode::CaptureMode;
use super::options::CaptureOptions;
use super::scratch::Scratch;
use crate::destroy::{Kept, attempt};
use crate::error::{Error, Result};
use crate::graph::{GraphHandle, Owner};
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
        if let Some(scratch) = options.shared() {
            context.ensure_same(scratch.context(), "the scratch memory")?;
        }
        let call = || {
            // SAFETY: the stream is alive.
            let code = unsafe { context.driver().cuStreamBeginCapture(self.as_raw(), options.raw_mode()) };
            context.check(Call::cuStreamBeginCapture, code)
        };
        keeper::reserve();
        let ready = |word| {
            keeper::open(word);
            captured_memory::begin(word, options.shared());
        };
        let word = open_captures::begin(self.raw_stream(), ready, call)?;
        Ok(ActiveCapture { origin: self.clone(), word, _thread: PhantomData })
    }
}

/// The result of a capture.
#[derive(Debug)]
pub struct Captured {
    /// The graph.
    pub graph: GraphHandle,
    /// The owners of everything that the nodes use. They have to live as long as the graph and
    /// whatever is made from it.
    pub owners: Vec<Owner>,
    /// The memory that the graph shares with the graphs of other captures, if it has used some: its
    /// launches are in one line with theirs. It is among the owners.
    pub scratch: Option<Scratch>,
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
        // In a forked child the table may be locked forever.
        if process::is_forked() { 0 } else { open_captures::size(self.word) }
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
    /// Calls `cuStreamEndCapture` (CUDA 10.0).
    ///
    /// # Errors
    /// A call during the capture has invalidated it, a stream that takes part was not waited for,
    /// or the driver refuses the call ([`Driver`](crate::Error::Driver)). The captured work is
    /// discarded.
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
        let mut owners = Vec::new();
        let over = || owners = take_kept(word);
        match open_captures::end(self.origin.context(), word, || end_in_driver(&self.origin), over) {
            Ok(raw) => {
                let (memory, scratch) = captured_memory::end(word);
                owners.extend(memory);
                Ok(Captured { graph: own(&self.origin, raw?), owners, scratch })
            }
            Err(refusal) => {
                end_later(self.origin.clone(), word);
                Err(refusal)
            }
        }
    }
}

/// The graph that the driver has just handed over.
fn own(origin: &Stream, raw: CUgraph) -> GraphHandle {
    // SAFETY: the graph is new and has no other owner.
    unsafe { GraphHandle::from_raw_owned(origin.context(), raw) }
}

/// Lets the reaper end a capture and discard the captured work. By the driver's rules another
/// thread may end a capture that belongs to this one: it fails, but the capture is over.
fn end_later(origin: Stream, word: u64) {
    attempt(Box::new(move || {
        let mut owners = Vec::new();
        let ended =
            open_captures::try_end(word, || end_in_driver(&origin), || owners = take_kept(word)).ok()?;
        owners.extend(captured_memory::end(word).0);
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
            // In a forked child the locks may be held forever.
            if process::is_forked() {
                return;
            }
            if let Ok(Captured { graph, owners, .. }) = self.finish() {
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
