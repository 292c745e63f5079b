//! Semaphores of other APIs, such as Vulkan.

use core::fmt;
#[cfg(unix)]
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;

#[cfg(unix)]
use cuda_sys::{CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUexternalSemaphoreHandleType, Call};
use cuda_sys::{CUextSemaphore_st, CUexternalSemaphore};

use crate::context::Context;
#[cfg(unix)]
use crate::context::capture_mode;
use crate::destroy::{self, Object};
#[cfg(unix)]
use crate::error::Result;
use crate::registry::{Raw, identity};

/// The kind of a semaphore of another API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SemaphoreKind {
    /// A semaphore that is signalled or not; a wait resets it.
    #[doc(alias = "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD")]
    Binary,
    /// A number that signals raise and waits leave as it is.
    #[doc(alias = "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD")]
    Timeline,
}

struct SemaphoreBox {
    raw: Raw<CUextSemaphore_st>,
    context: Context,
    kind: SemaphoreKind,
}

/// A semaphore of another API, such as Vulkan, that nodes of graphs signal and wait for. It is
/// destroyed with its last handle.
#[derive(Clone)]
pub struct ExternalSemaphore(Arc<SemaphoreBox>);

identity!(ExternalSemaphore);

impl ExternalSemaphore {
    /// Imports a semaphore that another interface has exported as a file descriptor. The driver
    /// takes the descriptor over; if it refuses, the descriptor is closed.
    ///
    /// Calls `cuImportExternalSemaphore` (CUDA 10.0).
    ///
    /// # Safety
    /// - `descriptor` is of a semaphore of that kind on the same device.
    /// - Signals and waits, here and in the other interface, follow the other interface's rules: a
    ///   binary semaphore is signalled only when it is not, and waited for once for each signal;
    ///   the number of a timeline only rises.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[cfg(unix)]
    #[doc(alias = "cuImportExternalSemaphore")]
    #[doc(alias = "cudaImportExternalSemaphore")]
    pub unsafe fn import(context: &Context, kind: SemaphoreKind, descriptor: OwnedFd) -> Result<Self> {
        let type_ = match kind {
            SemaphoreKind::Binary => {
                CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD
            }
            SemaphoreKind::Timeline => {
                CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
            }
        };
        let mut desc = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC { type_, ..Default::default() };
        desc.handle.fd = descriptor.as_raw_fd();
        let mut raw = core::ptr::null_mut();
        let current = context.enter()?;
        let mode = capture_mode::relaxed(context.driver());
        // SAFETY: the context is current, the out pointer valid and the description complete; what
        // the descriptor is of is the caller's promise.
        let code = unsafe { context.driver().cuImportExternalSemaphore(&raw mut raw, &raw const desc) };
        drop(mode);
        drop(current);
        context.check(Call::cuImportExternalSemaphore, code)?;
        // The driver's now.
        let _ = descriptor.into_raw_fd();
        // SAFETY: the driver has just made it, so it has no other owner.
        Ok(unsafe { Self::from_raw_owned(context, kind, raw) })
    }

    /// Takes over a semaphore that other code has imported; it is destroyed with the last handle.
    ///
    /// # Safety
    /// As [`import`](Self::import); `raw` is a semaphore of `context` and of that kind, and it has
    /// no other owner, now or later.
    #[must_use]
    #[doc(alias = "cuDestroyExternalSemaphore")]
    #[doc(alias = "cudaDestroyExternalSemaphore")]
    pub unsafe fn from_raw_owned(context: &Context, kind: SemaphoreKind, raw: CUexternalSemaphore) -> Self {
        Self(Arc::new(SemaphoreBox { raw: Raw::new(raw), context: context.clone(), kind }))
    }

    /// The driver's own handle.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUexternalSemaphore {
        self.0.raw.get()
    }

    /// The context it was imported into.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> SemaphoreKind {
        self.0.kind
    }
}

impl Drop for SemaphoreBox {
    fn drop(&mut self) {
        // Nothing can be using it: the nodes that do hold a handle, and so does every executable
        // until its last launch is over.
        destroy::destroy(&self.context, Object::Semaphore(self.raw));
    }
}

impl fmt::Debug for ExternalSemaphore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ExternalSemaphore")
            .field("raw", &self.0.raw)
            .field("kind", &self.0.kind)
            .finish()
    }
}
