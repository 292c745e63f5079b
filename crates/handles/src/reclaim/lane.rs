//! Lanes: the reaper's own stream in each context.

use cuda_sys::{CUstream_flags, CUstream_st, Call};

use crate::context::{Context, capture_mode};
use crate::destroy::{self, Object};
use crate::error::{Error, Result};
use crate::registry::Raw;

/// The reaper's own stream in one context.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) context: Context,
    pub(super) stream: Raw<CUstream_st>,
    /// Whether memory was freed there since it was last seen idle.
    pub(super) frees: bool,
}

impl Lane {
    /// A new one.
    pub(super) fn create(context: &Context) -> Result<Self> {
        let current = context.enter()?;
        let mut raw = core::ptr::null_mut();
        // SAFETY: the context is current and the out pointer valid.
        let code = unsafe {
            context.driver().cuStreamCreate(&raw mut raw, CUstream_flags::CU_STREAM_NON_BLOCKING.0)
        };
        drop(current);
        context.check(Call::cuStreamCreate, code)?;
        Ok(Self { context: context.clone(), stream: Raw::new(raw), frees: false })
    }

    /// Ends it if nothing else holds its context, after a wait for its last work. Returns whether
    /// it is ended.
    pub(super) fn is_ended(&self) -> bool {
        if !self.context.is_last() {
            return false;
        }
        if !destroy::may_call(&self.context) {
            return true;
        }
        let driver = self.context.driver();
        let mode = capture_mode::relaxed(driver);
        // SAFETY: the stream is the reaper's.
        let code = unsafe { driver.cuStreamSynchronize(self.stream.get()) };
        drop(mode);
        let is_over = matches!(
            self.context.check(Call::cuStreamSynchronize, code),
            Ok(()) | Err(Error::ContextLost(_))
        );
        if is_over {
            destroy::destroy(&self.context, Object::Stream(self.stream));
        }
        is_over
    }
}
