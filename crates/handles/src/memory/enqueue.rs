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
        self.enqueue_kept([memory], || memory.ready_once(self), work, tag, |_is_captured| Ok(()), call)
    }

    /// As [`enqueue_use`](Self::enqueue_use), for a call that reads and writes memory. It is made
    /// with the context current where it has to be: [to reach the
    /// memory](Self::enter_for_reach), and in captures [for updates](Self::enter_for_copy).
    #[inline(always)]
    pub(crate) fn enqueue_copy(
        &self,
        [source, destination]: [&Arc<Allocation>; 2],
        work: Work,
        tag: Option<Tag>,
        call: impl FnOnce(&'static Driver, CUstream) -> (Call, CUresult),
    ) -> Result<()> {
        let kinds = [source.kind(), destination.kind()];
        let ready = || Ok((source.ready_once(self)?, destination.ready_once(self)?));
        let enter = |is_captured| match is_captured {
            true => self.enter_for_copy(kinds),
            false => self.enter_for_reach(kinds),
        };
        self.enqueue_kept([source, destination], ready, work, tag, enter, call)
    }

    /// Makes the context current for a copy between these kinds of memory, if another one is. The
    /// driver asks the device of the **current** context whether it reaches memory of pools,
    /// whatever the stream. Fills go by their stream.
    ///
    /// Makes no call if the process sees one device; then every context reaches the memory.
    #[inline]
    pub(super) fn enter_for_reach<const N: usize>(&self, kinds: [MemoryKind; N]) -> Result<Option<Current>> {
        let may_be_far = self.context().device().is_one_of_several() && !kinds.iter().all(is_for_all_devices);
        if may_be_far { self.enter_in_place_of_another() } else { Ok(None) }
    }

    #[cold]
    fn enter_in_place_of_another(&self) -> Result<Option<Current>> {
        let mut current = core::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        let code = unsafe { self.context().driver().cuCtxGetCurrent(&raw mut current) };
        self.context().check(Call::cuCtxGetCurrent, code)?;
        let is_another = !current.is_null() && current != self.context().as_raw();
        if is_another { self.context().enter().map(Some) } else { Ok(None) }
    }

    /// Makes the context current for a captured copy between these kinds of memory, if nodes of
    /// executables are to take other parameters in its place, or else [to reach the
    /// memory](Self::enter_for_reach).
    ///
    /// If a copy from or to memory of a pool is captured while no context is current, the driver
    /// never sets its node in an executable. Copies between pools and pinned memory are exempt.
    #[cold]
    pub(super) fn enter_for_copy(&self, kinds: [MemoryKind; 2]) -> Result<Option<Current>> {
        let is_of_host = |kind| matches!(kind, MemoryKind::Pinned | MemoryKind::Registered);
        let is_exempt = kinds.iter().any(|kind| is_of_host(*kind))
            && kinds.iter().all(|kind| is_of_host(*kind) || kind.is_of_device());
        if is_exempt { self.enter_for_reach(kinds) } else { self.context().enter().map(Some) }
    }

    /// All steps; `ready` makes the memory ready, and `enter` prepares a call, which is captured or
    /// not.
    #[inline(always)]
    fn enqueue_kept<const N: usize, R, C>(
        &self,
        memory: [&Arc<Allocation>; N],
        ready: impl Fn() -> Result<R>,
        work: Work,
        tag: Option<Tag>,
        enter: impl FnOnce(bool) -> Result<C>,
        call: impl FnOnce(&'static Driver, CUstream) -> (Call, CUresult),
    ) -> Result<()> {
        let (access, _uses) = self.enqueue_once_ready(&memory, ready)?;
        let call = || call(self.context().driver(), self.as_raw());
        let is_captured = access.is_captured()?;
        let _current = enter(is_captured)?;
        if is_captured {
            return access.captured_use(memory, work, tag, call);
        }
        let (call, code) = call();
        self.context().check(call, code)
    }
}

/// Whether copies in a context of any device reach all memory of a kind.
fn is_for_all_devices(kind: &MemoryKind) -> bool {
    match kind {
        MemoryKind::Plain | MemoryKind::Pinned | MemoryKind::Registered | MemoryKind::Managed => true,
        MemoryKind::Pooled
        | MemoryKind::Graph
        | MemoryKind::Imported
        | MemoryKind::Foreign
        | MemoryKind::Global => false,
    }
}
