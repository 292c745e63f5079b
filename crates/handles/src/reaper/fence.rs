//! Freeing memory that was used off its home stream.
//!
//! Every stream that ever used memory whose home is elsewhere is a member of the fence, until its last work has been waited for. A batch of
//! frees goes like this: the reaper's own stream waits for every member and for the homes of the batch, and then frees in stream order. Nobody
//! waits on the host.

use std::sync::atomic::AtomicPtr;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_sys::{CUdeviceptr, CUresult, CUstream, CUstream_flags, CUstream_st, Call};

use super::list::{List, Node};
use super::queue;
use super::raw_stream::RawStream;
use crate::capture_mode;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::process;
use crate::raw::Raw;

/// Memory to be freed behind a fence.
#[derive(Debug)]
pub(crate) struct Free {
    pub(crate) address: CUdeviceptr,
    pub(crate) home: Arc<RawStream>,
}

pub(crate) static FREES: List<Free> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));
static MEMBERS: Mutex<Vec<Arc<RawStream>>> = Mutex::new(Vec::new());

/// Hands memory to the reaper. The node was made when the memory was first shared, so that the drop allocates nothing.
pub(crate) fn push_free(node: Box<Node<Free>>) {
    queue::expect_one();
    FREES.push(node);
    queue::wake();
}

/// Makes a stream a member, before it first uses memory whose home is elsewhere.
pub(crate) fn join(stream: &Arc<RawStream>) {
    if stream.is_in_fence() {
        return;
    }
    // Now rather than in a drop: something will wait for the reaper.
    queue::start();
    let mut members = MEMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !stream.is_in_fence() {
        members.push(Arc::clone(stream));
        // After the push: whoever sees it set relies on the membership.
        stream.set_in_fence();
    }
}

/// The last handle of a stream is gone.
pub(crate) fn close(stream: &Arc<RawStream>) {
    // In a forked child the locks may be held for ever.
    if !process::is_running() {
        return;
    }
    if !stream.is_in_fence() {
        return stream.close();
    }
    queue::expect_one();
    stream.close();
    queue::wake();
}

/// The reaper's own stream in one context.
#[derive(Debug)]
struct Lane {
    context: Context,
    stream: Raw<CUstream_st>,
}

/// What fences need from one round to the next.
#[derive(Debug, Default)]
pub(crate) struct Fences {
    lanes: Vec<Lane>,
    /// Frees whose fence cannot be built yet: a member is capturing, or a call failed.
    postponed: Vec<Free>,
}

impl Fences {
    pub(crate) const fn new() -> Self {
        Self { lanes: Vec::new(), postponed: Vec::new() }
    }

    /// Whether something waits for a later try.
    pub(crate) fn has_postponed(&self) -> bool {
        !self.postponed.is_empty() || members().iter().any(|member| member.gate().closed)
    }

    /// Frees what waits, and lets go of streams without handles. Returns how much was done.
    pub(crate) fn work(&mut self) -> usize {
        let mut frees = core::mem::take(&mut self.postponed);
        frees.extend(FREES.take());
        let members = members();
        // Read before any fence is built: work enqueued up to a stream's closing is in front of it.
        let closed: Vec<_> = members.iter().filter(|member| member.gate().closed).cloned().collect();
        let mut contexts: Vec<Context> = Vec::new();
        for stream in frees.iter().map(|free| &free.home).chain(&closed) {
            if !contexts.iter().any(|context| same(context, stream.context())) {
                contexts.push(stream.context().clone());
            }
        }
        let of = |streams: &[Arc<RawStream>], context: &Context| -> Vec<_> {
            streams.iter().filter(|stream| same(stream.context(), context)).cloned().collect()
        };
        let mut done = 0;
        for context in contexts {
            let (mine, others) = frees.into_iter().partition(|free| same(free.home.context(), &context));
            frees = others;
            done += self.work_in(&context, mine, &of(&members, &context), of(&closed, &context));
        }
        done
    }

    fn work_in(
        &mut self,
        context: &Context,
        frees: Vec<Free>,
        members: &[Arc<RawStream>],
        closed: Vec<Arc<RawStream>>,
    ) -> usize {
        if !queue::may_call(context) {
            frees.iter().for_each(|_| queue::one_done());
            return frees.len() + leave(closed);
        }
        let before: &[_] = if frees.is_empty() { &closed } else { members };
        let homes = frees.iter().map(|free| &free.home);
        match self.lane(context).and_then(|lane| order(before.iter().chain(homes), lane).map(|()| lane)) {
            Ok(lane) => self.free_all(context, frees, lane) + leave(closed),
            Err(error) => {
                report_unless_expected("fencing memory that several streams used", error);
                self.postponed.extend(frees);
                0
            }
        }
    }

    fn free_all(&mut self, context: &Context, frees: Vec<Free>, lane: CUstream) -> usize {
        if frees.is_empty() {
            return 0;
        }
        let _mode = capture_mode::relaxed(context.driver());
        frees.into_iter().filter(|free| self.free(free, lane)).count()
    }

    /// Frees in the lane's order. False if it has to be tried again.
    fn free(&mut self, free: &Free, lane: CUstream) -> bool {
        let context = free.home.context();
        // SAFETY: the address came from the driver's allocator and nobody has it any more; all its uses are in front of this point.
        let code = unsafe { context.driver().cuMemFreeAsync(free.address, lane) };
        if code == CUresult::CUDA_ERROR_NOT_PERMITTED {
            self.postponed.push(Free { address: free.address, home: Arc::clone(&free.home) });
            return false;
        }
        if let Err(error) = context.check(Call::cuMemFreeAsync, code) {
            queue::report("freeing a buffer", error);
        }
        queue::one_done();
        true
    }

    /// The reaper's stream in a context, made when first needed and kept as long as the process.
    fn lane(&mut self, context: &Context) -> Result<CUstream> {
        if let Some(lane) = self.lanes.iter().find(|lane| same(&lane.context, context)) {
            return Ok(lane.stream.get());
        }
        let current = context.enter()?;
        let mut raw = core::ptr::null_mut();
        // SAFETY: the context is current and the out pointer valid.
        let code = unsafe {
            context.driver().cuStreamCreate(&raw mut raw, CUstream_flags::CU_STREAM_NON_BLOCKING.0)
        };
        drop(current);
        context.check(Call::cuStreamCreate, code)?;
        self.lanes.push(Lane { context: context.clone(), stream: Raw::new(raw) });
        Ok(raw)
    }
}

/// Whether both are one context of the driver; an adopted one may have several handles that differ.
fn same(one: &Context, other: &Context) -> bool {
    one.as_raw() == other.as_raw()
}

fn members() -> Vec<Arc<RawStream>> {
    MEMBERS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Makes the lane wait for each stream, once.
fn order<'a>(streams: impl Iterator<Item = &'a Arc<RawStream>>, lane: CUstream) -> Result<()> {
    let mut seen = Vec::new();
    for stream in streams {
        if !seen.contains(&stream.id()) {
            seen.push(stream.id());
            stream.order_before_uncaptured(lane, "freeing memory that the stream used")?;
        }
    }
    Ok(())
}

/// Ends the membership of streams without handles, whose work has been waited for; the streams are destroyed.
fn leave(closed: Vec<Arc<RawStream>>) -> usize {
    let leaving = |member: &Arc<RawStream>| closed.iter().any(|stream| stream.id() == member.id());
    let mut members = MEMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    let (left, kept): (Vec<_>, Vec<_>) = members.drain(..).partition(leaving);
    *members = kept;
    drop(members);
    left.iter().for_each(|_| queue::one_done());
    left.len()
}

/// A capture going on, or a call that is not permitted on this thread, passes by itself.
fn report_unless_expected(what: &'static str, error: Error) {
    match error {
        Error::Capturing { .. } | Error::Driver { code: CUresult::CUDA_ERROR_NOT_PERMITTED, .. } => {}
        Error::Driver { code, .. } if is_of_capture(code) => {}
        error => queue::report(what, error),
    }
}

/// Codes of a capture that began meanwhile: trying later makes sense.
fn is_of_capture(code: CUresult) -> bool {
    let (first, last) = (
        CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.0,
        CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD.0,
    );
    (first..=last).contains(&code.0)
}
