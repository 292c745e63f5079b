//! Captures in progress: begun on a stream, ended by their owner.

use core::marker::PhantomData;

use cuda_sys::{CUgraph, CUresult, Call};

use super::keeper::{self, keep_for, take_kept};
use super::mode::CaptureMode;
use crate::destroy::{Kept, attempt};
use crate::error::{Error, Result};
use crate::graph::{GraphHandle, Owner};
use crate::stream::{AsStream, Stream, open_captures};
use crate::sync::process;

impl Stream {
    /// Begins to capture what is enqueued on this stream, by whomever and through whichever clone,
    /// and on streams that wait for events of the capture. It ends with [`ActiveCapture::end`];
    /// dropping the result ends it and throws away what was captured.
    ///
    /// It begins once nobody waits for the stream any more; waits that would begin meanwhile let it
    /// go first.
    ///
    /// Calls `cuStreamBeginCapture` (CUDA 10.1).
    ///
    /// # Errors
    /// The stream is capturing already; or this is a host function and somebody uses the stream
    /// (`NOT_PERMITTED`), who may be waiting for that very function; or somebody used it all the
    /// time, by a wait or a turn that was forgotten ([`Error::Busy`](crate::Error::Busy) names the
    /// threads); or the driver refuses the call.
    #[doc(alias = "cuStreamBeginCapture")]
    pub fn begin_capture(&self, mode: CaptureMode) -> Result<ActiveCapture> {
        let context = self.context();
        context.ensure_usable()?;
        let call = || {
            // SAFETY: the stream is alive.
            let code = unsafe { context.driver().cuStreamBeginCapture(self.as_raw(), mode.raw()) };
            context.check(Call::cuStreamBeginCapture, code)
        };
        keeper::reserve();
        let word = open_captures::begin(self.raw_stream(), keeper::open, call)?;
        Ok(ActiveCapture { origin: self.clone(), word, _thread: PhantomData })
    }
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
    /// A call during the capture has invalidated it; a stream that takes part was not waited for;
    /// or the driver refuses the call ([`Driver`](crate::Error::Driver)). What was captured is
    /// thrown away then.
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
        match open_captures::end(self.origin.context(), word, || end_in_driver(&self.origin), over) {
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
    attempt(Box::new(move || {
        let mut owners = Vec::new();
        let ended =
            open_captures::try_end(word, || end_in_driver(&origin), || owners = take_kept(word)).ok()?;
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
