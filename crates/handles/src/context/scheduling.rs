//! How threads wait for a context's work.

use core::ffi::c_uint;

use cuda_sys::{CUctx_flags, Call};

use super::handle::Context;
use crate::error::Result;

/// How a thread waits in the driver: the driver's scheduling flags of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheduling {
    /// The driver chooses between [`Spin`](Self::Spin) and [`Yield`](Self::Yield), by the number of
    /// contexts and processors.
    #[default]
    Auto,
    /// The thread spins: the shortest wait, and one processor busy.
    Spin,
    /// The thread gives its processor to others between looks.
    Yield,
    /// The thread sleeps until the driver wakes it: the longest wait, and no processor busy.
    BlockingSync,
}

impl Scheduling {
    fn of(flags: c_uint) -> Self {
        match CUctx_flags(flags & CUctx_flags::CU_CTX_SCHED_MASK.0) {
            CUctx_flags::CU_CTX_SCHED_SPIN => Self::Spin,
            CUctx_flags::CU_CTX_SCHED_YIELD => Self::Yield,
            CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC => Self::BlockingSync,
            _ => Self::Auto,
        }
    }

    fn flags(self) -> c_uint {
        let flags = match self {
            Self::Auto => CUctx_flags::CU_CTX_SCHED_AUTO,
            Self::Spin => CUctx_flags::CU_CTX_SCHED_SPIN,
            Self::Yield => CUctx_flags::CU_CTX_SCHED_YIELD,
            Self::BlockingSync => CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC,
        };
        flags.0
    }
}

impl Context {
    /// How threads wait in this context.
    ///
    /// Calls `cuCtxGetFlags` (CUDA 7.0).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuCtxGetFlags")]
    #[doc(alias = "cudaGetDeviceFlags")]
    pub fn scheduling(&self) -> Result<Scheduling> {
        self.flags().map(Scheduling::of)
    }

    /// Sets how threads wait in this context from now on, and leaves its other flags alone. It also
    /// affects other code that uses the context. An [event](crate::EventOptions::blocking) can
    /// block by itself instead.
    ///
    /// Calls `cuCtxGetFlags` (CUDA 7.0) and `cuCtxSetFlags` (CUDA 12.1).
    ///
    /// ```no_run
    /// use cuda_handles::{Device, Scheduling};
    ///
    /// # fn main() -> cuda_handles::Result<()> {
    /// let context = Device::new(0)?.context()?;
    /// context.set_scheduling(Scheduling::BlockingSync)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuCtxSetFlags")]
    #[doc(alias = "cuDevicePrimaryCtxSetFlags")]
    #[doc(alias = "cudaSetDeviceFlags")]
    pub fn set_scheduling(&self, scheduling: Scheduling) -> Result<()> {
        let others = self.flags()? & !CUctx_flags::CU_CTX_SCHED_MASK.0;
        let _current = self.enter()?;
        // SAFETY: the context is current.
        let code = unsafe { self.driver().cuCtxSetFlags(others | scheduling.flags()) };
        self.check(Call::cuCtxSetFlags, code)
    }

    fn flags(&self) -> Result<c_uint> {
        let _current = self.enter()?;
        let mut flags = 0;
        // SAFETY: the context is current and the out pointer valid.
        let code = unsafe { self.driver().cuCtxGetFlags(&raw mut flags) };
        self.check(Call::cuCtxGetFlags, code)?;
        Ok(flags)
    }
}
