//! Starting and stopping a profiler that watches the process.

use cuda_sys::{CUresult, Call, Driver};

use super::capture_mode;
use super::handle::Context;
use crate::error::Result;

impl Context {
    /// Tells a profiler that watches this process to record from now on (`nsys profile
    /// --capture-range=cudaProfilerApi`). Without a profiler it does nothing.
    ///
    /// Calls `cuProfilerStart` (CUDA 4.0). Captures that are open stay intact.
    ///
    /// ```no_run
    /// # fn main() -> cuda_handles::Result<()> {
    /// # let context = cuda_handles::Device::new(0)?.context()?;
    /// # let stream = context.stream()?;
    /// context.start_profiler()?;
    /// // The work to look at.
    /// stream.synchronize_blocking()?;
    /// context.stop_profiler()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuProfilerStart")]
    #[doc(alias = "cudaProfilerStart")]
    pub fn start_profiler(&self) -> Result<()> {
        // SAFETY: the call takes nothing, and a context is current around it.
        self.profiler(Call::cuProfilerStart, |driver| unsafe { driver.cuProfilerStart() })
    }

    /// Tells a profiler that watches this process to record no more. Work that is still enqueued
    /// may be missing: wait for it first.
    ///
    /// Calls `cuProfilerStop` (CUDA 4.0). Captures that are open stay intact.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuProfilerStop")]
    #[doc(alias = "cudaProfilerStop")]
    pub fn stop_profiler(&self) -> Result<()> {
        // SAFETY: as above.
        self.profiler(Call::cuProfilerStop, |driver| unsafe { driver.cuProfilerStop() })
    }

    fn profiler(&self, call: Call, make: impl FnOnce(&Driver) -> CUresult) -> Result<()> {
        let _current = self.enter()?;
        // The driver forbids it near a capture.
        let mode = capture_mode::relaxed(self.driver());
        let code = make(self.driver());
        drop(mode);
        self.check(call, code)
    }
}
