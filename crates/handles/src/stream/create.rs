//! Creating streams.

use core::ops::RangeInclusive;
use std::sync::Arc;

use cuda_sys::{CUstream_flags, Call};

use super::handle::{STREAMS, Stream};
use super::options::StreamOptions;
use crate::context::Context;
use crate::error::Result;
use crate::raw_stream::RawStream;

impl Context {
    /// A stream with the default options.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuStreamCreate")]
    #[doc(alias = "cudaStreamCreate")]
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with(StreamOptions::default())
    }

    /// A stream with these options.
    ///
    /// Calls `cuStreamCreateWithPriority` (CUDA 5.5).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuStreamCreate")]
    #[doc(alias = "cuStreamCreateWithPriority")]
    #[doc(alias = "cudaStreamCreateWithFlags")]
    #[doc(alias = "cudaStreamCreateWithPriority")]
    #[doc(alias = "cudaStreamNonBlocking")]
    pub fn stream_with(&self, options: StreamOptions) -> Result<Stream> {
        let flags = match options.blocking_with_legacy {
            true => CUstream_flags::CU_STREAM_DEFAULT,
            false => CUstream_flags::CU_STREAM_NON_BLOCKING,
        };
        let current = self.enter()?;
        let mut raw = core::ptr::null_mut();
        // SAFETY: the context is current and the out pointer valid.
        let code =
            unsafe { self.driver().cuStreamCreateWithPriority(&raw mut raw, flags.0, options.priority) };
        drop(current);
        self.check(Call::cuStreamCreateWithPriority, code)?;
        let stream = Stream::wrap(RawStream::created(self, raw, options.blocking_with_legacy), Some(options));
        STREAMS.register(raw.addr(), Arc::downgrade(&stream.0));
        Ok(stream)
    }

    /// The priorities that streams can have, from the most urgent (the lowest number) to the least
    /// urgent one.
    ///
    /// Calls `cuCtxGetStreamPriorityRange` (CUDA 5.5).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuCtxGetStreamPriorityRange")]
    #[doc(alias = "cudaDeviceGetStreamPriorityRange")]
    pub fn stream_priorities(&self) -> Result<RangeInclusive<i32>> {
        let _current = self.enter()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the context is current and the out pointers are valid.
        let code = unsafe { self.driver().cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest) };
        self.check(Call::cuCtxGetStreamPriorityRange, code)?;
        Ok(greatest..=least)
    }
}
