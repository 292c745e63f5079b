//! Enqueuing one call that uses memory: the steps before it, in their order, once.

use std::sync::Arc;

use cuda_sys::{CUresult, CUstream, Call, Driver};

use super::allocation::Allocation;
use crate::error::Result;
use crate::stream::Stream;

impl Stream {
    /// Enqueues one driver call that uses `memory`:
    ///
    /// 1. makes the memory ready on this stream, until the call is enqueued;
    /// 2. takes read access of the stream; a call that is captured skips the waits of step 1;
    /// 3. on a capturing stream, gives the capture the memory to keep;
    /// 4. makes the call and checks its answer.
    ///
    /// `work` makes the call, with the driver and the raw stream. Costs nothing over the steps
    /// written out: all of it is inlined.
    #[inline(always)]
    pub(crate) fn enqueue_use(
        &self,
        memory: &Arc<Allocation>,
        work: impl FnOnce(&'static Driver, CUstream) -> (Call, CUresult),
    ) -> Result<()> {
        self.enqueue_kept([memory], || memory.ready_once(self), work)
    }

    /// As [`enqueue_use`](Self::enqueue_use), for a call that reads and writes memory.
    #[inline(always)]
    pub(crate) fn enqueue_copy(
        &self,
        source: &Arc<Allocation>,
        destination: &Arc<Allocation>,
        work: impl FnOnce(&'static Driver, CUstream) -> (Call, CUresult),
    ) -> Result<()> {
        let ready = || Ok((source.ready_once(self)?, destination.ready_once(self)?));
        self.enqueue_kept([source, destination], ready, work)
    }

    /// All steps; `ready` makes the memory ready.
    #[inline(always)]
    fn enqueue_kept<const N: usize, R>(
        &self,
        memory: [&Arc<Allocation>; N],
        ready: impl Fn() -> Result<R>,
        work: impl FnOnce(&'static Driver, CUstream) -> (Call, CUresult),
    ) -> Result<()> {
        let (access, _uses) = self.enqueue_once_ready(&memory, ready)?;
        if access.is_captured()? {
            memory.into_iter().try_for_each(|memory| access.keep_memory(memory))?;
        }
        let (call, code) = work(self.context().driver(), self.as_raw());
        self.context().check(call, code)
    }
}
