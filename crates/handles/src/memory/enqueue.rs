//! Enqueuing one call that uses memory: the steps before it, in their order, once.

use std::sync::Arc;

use cuda_sys::{CUresult, CUstream, Call, Driver};

use super::allocation::Allocation;
use crate::error::Result;
use crate::stream::Stream;

impl Stream {
    /// Enqueues one driver call that uses the memory of `first` and `second`:
    ///
    /// 1. makes the memory ready on this stream, until the call is enqueued;
    /// 2. takes read access of the stream;
    /// 3. on a capturing stream, gives the capture the memory to keep;
    /// 4. makes the call and checks its answer.
    ///
    /// `work` makes the call, with the driver and the raw stream. Costs nothing over the steps
    /// written out: all of it is inlined.
    #[inline(always)]
    pub(crate) fn enqueue_use(
        &self,
        first: &Arc<Allocation>,
        second: Option<&Arc<Allocation>>,
        work: impl FnOnce(&'static Driver, CUstream) -> (Call, CUresult),
    ) -> Result<()> {
        let _first = first.ready_once(self)?;
        let _second = match second {
            Some(second) => Some(second.ready_once(self)?),
            None => None,
        };
        let access = self.enqueue()?;
        if access.is_captured()? {
            access.keep(first)?;
            if let Some(second) = second {
                access.keep(second)?;
            }
        }
        let (call, code) = work(self.context().driver(), self.as_raw());
        self.context().check(call, code)
    }
}
