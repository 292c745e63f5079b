//! Calls on memory that may not be ready yet: what is captured waits for nothing.

use std::sync::Arc;

use super::enqueue::Enqueue;
use crate::error::{Error, Result};
use crate::memory::Allocation;
use crate::stream::Stream;

impl Stream {
    /// Makes memory usable by the call that is enqueued on this stream next, and takes the right to
    /// make it; see [`Allocation::ready_on`] and [`enqueue`](Self::enqueue).
    ///
    /// In a capture of this library it waits for nothing and makes no driver call. The caller gives
    /// the capture the memory to keep ([`Enqueue::keep`]). Then the graph's first launch waits for
    /// the homes of the memory.
    ///
    /// # Errors
    /// As [`Allocation::ready_on`] and [`enqueue`](Self::enqueue). Other code captures the stream,
    /// which would have to wait ([`CapturedFirstUse`](crate::Error::CapturedFirstUse)).
    pub fn enqueue_ready(&self, memory: &[&Arc<Allocation>]) -> Result<Enqueue<'_>> {
        let ready = || memory.iter().try_for_each(|memory| memory.ready_on(self));
        self.enqueue_once_ready(memory, ready).map(|(access, _)| access)
    }

    /// As [`enqueue_ready`](Self::enqueue_ready), for a kernel with this memory among its
    /// arguments; see [`Allocation::ready_for_kernel`].
    ///
    /// # Errors
    /// As [`enqueue_ready`](Self::enqueue_ready).
    pub fn enqueue_ready_for_kernel(&self, memory: &[&Arc<Allocation>]) -> Result<Enqueue<'_>> {
        let ready = || memory.iter().try_for_each(|memory| memory.ready_for_kernel(self));
        let captured = |memory: &Allocation, capture| memory.use_captured_by_kernel(self, capture);
        self.enqueue_by(memory, ready, captured).map(|(access, _)| access)
    }

    /// As [`enqueue_ready`](Self::enqueue_ready), where `ready` makes the memory ready. Its result
    /// is `None` where the call is captured and the memory was not ready.
    #[inline(always)]
    pub(crate) fn enqueue_once_ready<R>(
        &self,
        memory: &[&Arc<Allocation>],
        ready: impl Fn() -> Result<R>,
    ) -> Result<(Enqueue<'_>, Option<R>)> {
        self.enqueue_by(memory, ready, |memory, capture| memory.use_captured(self, capture))
    }

    /// As [`enqueue_once_ready`](Self::enqueue_once_ready); `captured` lets a captured call use the
    /// memory.
    #[inline(always)]
    pub(crate) fn enqueue_by<R>(
        &self,
        memory: &[&Arc<Allocation>],
        ready: impl Fn() -> Result<R>,
        captured: impl Fn(&Allocation, u64) -> Result<()>,
    ) -> Result<(Enqueue<'_>, Option<R>)> {
        loop {
            match ready() {
                Ok(ready) => return Ok((self.enqueue()?, Some(ready))),
                Err(refusal) => {
                    if let Some(access) = self.enqueue_captured(memory, refusal, &captured)? {
                        return Ok((access, None));
                    }
                }
            }
        }
    }

    /// Access for a captured call whose memory is not ready. `None` if the stream has left the
    /// capture since the refusal: then the memory has to be made ready.
    #[cold]
    fn enqueue_captured(
        &self,
        memory: &[&Arc<Allocation>],
        refusal: Error,
        captured: impl Fn(&Allocation, u64) -> Result<()>,
    ) -> Result<Option<Enqueue<'_>>> {
        if refusal != Error::CapturedFirstUse {
            return Err(refusal);
        }
        let access = self.enqueue()?;
        match self.capture_id() {
            Some(capture) => {
                memory.iter().try_for_each(|memory| captured(memory, capture))?;
                Ok(Some(access))
            }
            None if access.is_captured()? => Err(refusal),
            None => Ok(None),
        }
    }
}
