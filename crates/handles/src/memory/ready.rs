//! Readiness: whether a stream may use an allocation now, and what it has to wait for.

use std::sync::atomic::Ordering;

use super::allocation::{Allocation, LAST, SETTLED, SHARED};
use super::backing::HostMemory;
use super::reach::out_of_reach;
use crate::error::{Error, Result, WrongContext};
use crate::reclaim;
use crate::stream::Stream;

impl Allocation {
    /// Makes the memory usable by the work that is enqueued on `stream` next, and lets it be freed
    /// only after that work. This costs a few loads and no driver call on the home, on the stream
    /// it was called with last, and for settled memory. Otherwise `stream` is made to wait for the
    /// home, once.
    ///
    /// A stream in a capture waits for nothing. So there this is an error where a wait would be
    /// needed, and [`Stream::enqueue_ready`] is what lets the capture use the memory.
    ///
    /// # Errors
    /// `stream` is of another context ([`WrongContext`](crate::Error::WrongContext)); it would have
    /// to wait and is capturing ([`CapturedFirstUse`](crate::Error::CapturedFirstUse)), or the home
    /// is ([`CapturingHome`](crate::Error::CapturingHome)); or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[inline]
    pub fn ready_on(&self, stream: &Stream) -> Result<()> {
        if stream.id() == self.home_id {
            return Ok(());
        }
        let state = self.state.load(Ordering::Acquire);
        if state >> LAST == stream.id() {
            return Ok(());
        }
        self.share_with(stream, state)
    }

    /// As [`ready_on`](Self::ready_on), for the argument of a kernel: memory of another context is
    /// made ready, too, if kernels of the stream's context [can use](Self::is_reachable_from) it.
    ///
    /// # Errors
    /// As [`ready_on`](Self::ready_on).
    #[inline]
    pub fn ready_for_kernel(&self, stream: &Stream) -> Result<()> {
        if stream.id() == self.home_id {
            return Ok(());
        }
        let state = self.state.load(Ordering::Acquire);
        if state >> LAST == stream.id() {
            return Ok(());
        }
        self.share_with_kernel(stream, state)
    }

    fn share_with_kernel(&self, stream: &Stream, state: u64) -> Result<()> {
        if self.context().is_same(stream.context()) {
            return self.use_on(stream, state);
        }
        self.reach_from(stream)?;
        self.ready_across(stream)
    }

    /// An error for memory that kernels on the stream cannot use.
    #[cold]
    fn reach_from(&self, stream: &Stream) -> Result<()> {
        match self.is_reachable_from(stream.context())? {
            true => Ok(()),
            false => Err(out_of_reach(self, stream.context())),
        }
    }

    /// As [`ready_on`](Self::ready_on), for a copy between devices: `stream` may be of another
    /// context.
    pub(super) fn ready_across(&self, stream: &Stream) -> Result<()> {
        if self.context().is_same(stream.context()) {
            return self.ready_on(stream);
        }
        self.context().ensure_usable()?;
        reclaim::expect_across();
        self.use_on(stream, self.state.load(Ordering::Acquire))
    }

    fn share_with(&self, stream: &Stream, state: u64) -> Result<()> {
        self.ensure_on(stream)?;
        self.use_on(stream, state)
    }

    /// An error for a stream of another context.
    pub(super) fn ensure_on(&self, stream: &Stream) -> Result<()> {
        if self.context().is_same(stream.context()) { Ok(()) } else { Err(self.elsewhere(stream)) }
    }

    #[cold]
    fn elsewhere(&self, stream: &Stream) -> Error {
        let (found, needed) = (self.context(), stream.context());
        WrongContext::new("the memory", found, "the stream", needed).advise(WrongContext::MEMORY).into()
    }

    /// As [`ready_on`](Self::ready_on), for one call that is over when the result is dropped. So of
    /// host memory it is known behind which point of the stream the use lies.
    #[inline]
    pub(super) fn ready_once<'a>(&'a self, stream: &'a Stream) -> Result<Use<'a>> {
        match self.backing.host() {
            Some(memory) if self.bytes > 0 => self.begin_use(memory, stream),
            _ => self.ready_on(stream).map(|()| Use(None)),
        }
    }

    fn begin_use<'a>(&'a self, memory: &'a HostMemory, stream: &'a Stream) -> Result<Use<'a>> {
        self.ensure_on(stream)?;
        stream.context().ensure_usable()?;
        memory.begin(stream.raw_stream());
        let once = Use(Some((memory, stream)));
        reclaim::join(stream.raw_stream());
        self.note_shared();
        Ok(once)
    }

    /// Notes that it is used off its home, and prepares its free for that.
    pub(super) fn note_shared(&self) {
        self.free_request.get_or_init(|| self.new_free_request());
        self.state.fetch_or(SHARED, Ordering::AcqRel);
    }

    fn use_on(&self, stream: &Stream, state: u64) -> Result<()> {
        const BOTH: u64 = SHARED | SETTLED;
        if self.bytes == 0 {
            return Ok(());
        }
        if self.backing.graph().is_some() {
            return Err(Error::MemoryOfGraph);
        }
        // Before the users of host memory are locked.
        stream.context().ensure_usable()?;
        match self.backing.host() {
            Some(memory) => memory.add(stream.raw_stream()),
            None if state & BOTH == BOTH && stream.raw_stream().is_in_fence() => return Ok(()),
            None => {}
        }
        let settled = self.is_settled();
        if stream.raw_stream().capture() != 0 && (self.scratch.is_some() || !settled) {
            // Whether the call is captured is known only with access of the stream.
            return Err(Error::CapturedFirstUse);
        }
        if let Some(scratch) = &self.scratch {
            scratch.note_outside();
        }
        reclaim::join(stream.raw_stream());
        self.free_request.get_or_init(|| self.new_free_request());
        if let Some(home) = self.home()
            && !settled
            && home.id() != stream.id()
        {
            stream.wait_for_ticket(home, self.ticket)?;
        }
        let bits = SHARED | if settled { SETTLED } else { 0 };
        // The next call has to ask again whether it may use memory of another context.
        let is_own = self.context().is_same(stream.context());
        let last = |old: u64| if is_own { stream.id() << LAST } else { old & !BOTH };
        let mark = |old: u64| Some(last(old) | old & BOTH | bits);
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, mark);
        Ok(())
    }

    /// Lets a call that is captured use the memory. It waits for nothing: the capture's graph does,
    /// before its first launch. The caller has read access of the stream, which is in this capture.
    pub(crate) fn use_captured(&self, stream: &Stream, capture: u64) -> Result<()> {
        self.ensure_on(stream)?;
        self.use_captured_across(stream, capture)
    }

    /// As [`use_captured`](Self::use_captured), for the argument of a kernel; see
    /// [`ready_for_kernel`](Self::ready_for_kernel).
    pub(crate) fn use_captured_by_kernel(&self, stream: &Stream, capture: u64) -> Result<()> {
        if !self.context().is_same(stream.context()) {
            self.reach_from(stream)?;
        }
        self.use_captured_across(stream, capture)
    }

    /// As [`use_captured`](Self::use_captured), for a stream of whatever context.
    pub(super) fn use_captured_across(&self, stream: &Stream, capture: u64) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        if self.backing.graph().is_some() {
            return Err(Error::MemoryOfGraph);
        }
        if !self.context().is_same(stream.context()) {
            self.context().ensure_usable()?;
            reclaim::expect_across();
        }
        if let Some(scratch) = self.scratch_use() {
            scratch.note_captured(capture, stream.id());
        }
        self.note_shared();
        Ok(())
    }

    /// Makes host memory unshared again if no work can be using it: every stream that was made
    /// ready for it is idle.
    pub(super) fn unshare(&mut self) -> bool {
        let is_usable = self.context().ensure_usable().is_ok();
        let Some(memory) = self.backing.host_mut() else { return false };
        let users = memory.users.get_mut();
        if !is_usable || !users.are_over() {
            return false;
        }
        users.clear();
        *self.state.get_mut() = SETTLED;
        true
    }

    /// Makes host memory unshared again, after a wait for all that is enqueued on the streams that
    /// use it.
    pub(super) fn unshare_blocking(&mut self) -> Result<()> {
        self.context().ensure_usable()?;
        let Some(memory) = self.backing.host_mut() else { return Err(Error::StillShared) };
        let users = memory.users.get_mut();
        users.wait()?;
        users.clear();
        *self.state.get_mut() = SETTLED;
        Ok(())
    }
}

/// One use of memory, over when this is dropped; see [`Allocation::ready_once`].
#[must_use]
pub(super) struct Use<'a>(Option<(&'a HostMemory, &'a Stream)>);

impl Drop for Use<'_> {
    fn drop(&mut self) {
        if let Some((memory, stream)) = self.0 {
            // Behind the call, whatever came of it.
            memory.users().end(stream.id(), stream.ticket());
        }
    }
}
