//! Making, filling and copying device memory.

use core::ffi::c_void;

use cuda_sys::{CUdeviceptr, CUresult, Call};

use crate::capture::Tag;
use crate::error::{Error, MemoryKind, Result};
use crate::memory::{Element, Slice, same_length};
use crate::stream::{Stream, Work};

impl Stream {
    /// Copies memory to memory of the same length, of whatever [kinds](crate::MemoryKind). Waits
    /// for nothing.
    ///
    /// Calls `cuMemcpyDtoDAsync`, `cuMemcpyDtoHAsync` and `cuMemcpyHtoDAsync` (CUDA 3.2), and for
    /// other kinds than device memory and pinned memory on `cuMemcpyAsync` (CUDA 4.0). A captured
    /// copy, except between device memory and pinned memory, is made with the context current
    /// (`cuCtxPushCurrent` and `cuCtxPopCurrent`, CUDA 4.0), so that executables can be updated.
    ///
    /// Where there are several devices, a copy of memory that may be of a pool is made with the
    /// context current as well. Then `cuCtxGetCurrent` (CUDA 4.0) tells whether another one is.
    ///
    /// # Errors
    /// The lengths differ ([`Length`](crate::Error::Length)), the ranges overlap
    /// ([`Overlap`](crate::Error::Overlap)), one is of another context
    /// ([`WrongContext`](crate::Error::WrongContext)), or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemcpyAsync")]
    #[doc(alias = "cuMemcpyDtoDAsync")]
    #[doc(alias = "memcpy")]
    #[doc(alias = "cudaMemcpyAsync")]
    #[doc(alias = "cudaMemcpyDeviceToDevice")]
    #[doc(alias = "cudaMemcpyDeviceToHost")]
    #[doc(alias = "cudaMemcpyHostToDevice")]
    #[doc(alias = "cuMemcpyDtoHAsync")]
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[doc(alias = "copy_to_host")]
    #[doc(alias = "copy_from_host")]
    pub fn copy<'a, 'b, T: Element>(
        &self,
        source: impl Into<Slice<'a, T>>,
        destination: impl Into<Slice<'b, T>>,
    ) -> Result<()> {
        self.copy_tagged(source.into(), destination.into(), None)
    }

    /// As [`copy`](Self::copy), with a tag for the record of a captured call.
    // Inlined, so that a call without a tag has none to pass on.
    #[doc(hidden)]
    #[inline(always)]
    pub fn copy_tagged<T: Element>(
        &self,
        source: Slice<'_, T>,
        destination: Slice<'_, T>,
        tag: Option<Tag>,
    ) -> Result<()> {
        same_length("the destination of a copy", source.len(), destination.len())?;
        apart(source.address(), destination.address(), source.size_bytes())?;
        if source.size_bytes() == 0 {
            return Ok(());
        }
        let work = Work::Copy {
            source: source.address(),
            destination: destination.address(),
            bytes: source.size_bytes() as u64,
        };
        self.enqueue_copy([source.allocation(), destination.allocation()], work, tag, |_driver, _stream| {
            // SAFETY: both ranges lie in memory that lives until after this point of the stream, or
            // as long as the graph it is captured into.
            unsafe { copy_call(self, &source, &destination) }
        })
    }
}

/// Enqueues a copy of the source's size by the call for the kinds of memory.
///
/// # Safety
/// The destination is as large as the source; the memory stays as long as the copy may run.
unsafe fn copy_call<T>(
    stream: &Stream,
    source: &Slice<'_, T>,
    destination: &Slice<'_, T>,
) -> (Call, CUresult) {
    let (from, to, bytes) = (source.address(), destination.address(), source.size_bytes());
    let (driver, raw) = (stream.context().driver(), stream.as_raw());
    let kinds = (source.allocation().kind(), destination.allocation().kind());
    // SAFETY: the caller's promise.
    unsafe {
        match kinds {
            (from_kind, to_kind) if from_kind.is_of_device() && to_kind.is_of_device() => {
                (Call::cuMemcpyDtoDAsync, driver.cuMemcpyDtoDAsync(to, from, bytes, raw))
            }
            (kind, MemoryKind::Pinned | MemoryKind::Registered) if kind.is_of_device() => {
                (Call::cuMemcpyDtoHAsync, driver.cuMemcpyDtoHAsync(host(to), from, bytes, raw))
            }
            (MemoryKind::Pinned | MemoryKind::Registered, kind) if kind.is_of_device() => {
                (Call::cuMemcpyHtoDAsync, driver.cuMemcpyHtoDAsync(to, host(from), bytes, raw))
            }
            _ => (Call::cuMemcpyAsync, driver.cuMemcpyAsync(to, from, bytes, raw)),
        }
    }
}

/// The host's pointer for an address that both have.
fn host(address: CUdeviceptr) -> *mut c_void {
    core::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

/// An error if two ranges of `bytes` overlap.
fn apart(one: CUdeviceptr, other: CUdeviceptr, bytes: usize) -> Result<()> {
    let bytes = bytes as CUdeviceptr;
    match bytes.saturating_sub(one.abs_diff(other)) {
        0 => Ok(()),
        overlap => Err(Error::Overlap { bytes: usize::try_from(overlap).unwrap_or(usize::MAX) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_measured() {
        assert_eq!(apart(0, 8, 8), Ok(()));
        assert_eq!(apart(8, 0, 8), Ok(()));
        assert_eq!(apart(0, 4, 8), Err(Error::Overlap { bytes: 4 }));
        assert_eq!(apart(4, 0, 8), Err(Error::Overlap { bytes: 4 }));
        assert_eq!(apart(0, 0, 0), Ok(()));
    }
}
