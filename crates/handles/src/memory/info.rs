//! How much memory the device has.

use cuda_sys::Call;

use crate::context::Context;
use crate::error::Result;
use crate::reclaim;

impl Context {
    /// The device's memory, (free, total) in bytes. Memory that was dropped and is idle is freed
    /// first, for which this usually waits some microseconds, and half a second at most. Memory
    /// freed by its home stream counts as free once that stream was waited for.
    ///
    /// Calls `cuMemGetInfo` (CUDA 3.2).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuMemGetInfo")]
    #[doc(alias = "cudaMemGetInfo")]
    pub fn memory_info(&self) -> Result<(usize, usize)> {
        self.ensure_usable()?;
        reclaim::catch_up_frees(self);
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both out pointers are valid.
        let code = unsafe { self.driver().cuMemGetInfo(&raw mut free, &raw mut total) };
        self.check(Call::cuMemGetInfo, code)?;
        Ok((free, total))
    }
}
