//! Enqueuing one call that uses memory: the steps before it, in their order, once.

use std::sync::Arc;

use cuda_sys::{CUresult, CUstream, Call, Driver};

use super::allocation::Allocation;
use crate::capture::Tag;
use crate::context::Current;
use crate::error::{MemoryKind, Result};
use crate::stream::{Stream, Work};

impl Stream {
    /// Enqueues one driver call that uses `memory`:
    ///
    /// 1. makes the memory ready on this stream, until the call is enqueued;
    /// 2. takes read access of the stream; a call that is captured skips the waits of step 1;
    /// 3. on a capturing stream, records the call as `work`, with the memory for the capture to
    ///    keep, and with the tag;
    /// 4. makes the call and checks its answer.
    ///
    /// `call` makes the call, with the driver and the raw stream. Costs nothing over the steps
    /// written out: all of it is inlined, but for captured calls.
    #[inline(always)]
    pub(crate) fn enqueue_use(
        &self,
        memory: &Arc<Allocation>,
        work: Work,
        tag: Option<Tag>,
        call: impl FnOnce(&'static Driver, CUstream) -> (Call, CUresult),
    ) -> Result<()> {
        self.enqueue_kept([memory], || memory.ready_once(self), work, tag, || Ok(()), call)
    }

    /// As [`enqueue_use`](Self::enqueue_use), for a call that reads and writes memory. If it is
    /// captured, it is made [with the context current](Self::enter_for_copy) where it has to be.
    #[inline(always)]
    pub(crate) fn enqueue_copy(
        &self,
        [source, destination]: [&Arc<Allocation>; 2],
        work: Work,
        tag: Option<Tag>,
        call: impl FnOnce(&'static Driver, CUstream) -> (Call, CUresult),
    ) -> Result<()> {
        let ready = || Ok((source.ready_once(self)?, destination.ready_once(self)?));
        let enter = || self.enter_for_copy([source.kind(), destination.kind()]);
        self.enqueue_kept([source, destination], ready, work, tag, enter, call)
    }

    /// Makes the context current for a captured copy between these kinds of memory, if nodes of
    /// executables are to take other parameters in its place.
    ///
    /// If a copy from or to memory of a pool is captured while no context is current, the driver
    /// never sets its node in an executable. Copies between pools and pinned memory are exempt.
    #[cold]
    pub(super) fn enter_for_copy(&self, kinds: [MemoryKind; 2]) -> Result<Option<Current>> {
        let is_of_host = |kind| matches!(kind, MemoryKind::Pinned | MemoryKind::Registered);
        let is_exempt = kinds.iter().any(|kind| is_of_host(*kind))
            && kinds.iter().all(|kind| is_of_host(*kind) || kind.is_of_device());
        if is_exempt { Ok(None) } else { self.context().enter().map(Some) }
    }

    /// All steps; `ready` makes the memory ready, and `enter` prepares a call that is captured.
    #[inline(always)]
    fn enqueue_kept<const N: usize, R, C>(
        &self,
        memory: [&Arc<Allocation>; N],
        ready: impl Fn() -> Result<R>,
        work: Work,
        tag: Option<Tag>,
        enter: impl FnOnce() -> Result<C>,
        call: impl FnOnce(&'static Driver, CUstream) -> (Call, CUresult),
    ) -> Result<()> {
        let (access, _uses) = self.enqueue_once_ready(&memory, ready)?;
        let call = || call(self.context().driver(), self.as_raw());
        if access.is_captured()? {
            let _current = enter()?;
            return access.captured_use(memory, work, tag, call);
        }
        let (call, code) = call();
        self.context().check(call, code)
    }
}
