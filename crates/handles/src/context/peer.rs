//! Access of one context's kernels to the memory of another.

use cuda_sys::{CUresult, Call};

use super::capture_mode;
use super::handle::Context;
use crate::error::Result;

impl Context {
    /// Lets kernels of this context use [plain](crate::MemoryKind::Plain) memory of another
    /// device's context, allocated earlier or later. Once is enough; again changes nothing.
    ///
    /// The access goes one way: for the other way, call this on `other`. It cannot be taken back,
    /// since kernels of nodes and launches may rely on it. Pooled memory needs the access of its
    /// pool instead ([`MemPool::grant_access`](crate::MemPool::grant_access)). Copies between
    /// devices need neither.
    ///
    /// Calls `cuCtxEnablePeerAccess` (CUDA 4.0).
    ///
    /// ```no_run
    /// # use cuda_handles::{Context, Result};
    /// # fn example(here: &Context, there: &Context) -> Result<()> {
    /// if here.device().can_access(there.device())? {
    ///     here.enable_peer_access(there)?;
    ///     there.enable_peer_access(here)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The devices cannot reach each other's memory (`PEER_ACCESS_UNSUPPORTED`; see
    /// [`Device::can_access`](crate::Device::can_access)), both contexts are of one device
    /// (`INVALID_DEVICE`), or the driver refuses the call for another reason
    /// ([`Driver`](crate::Error::Driver)); or one of the contexts is lost.
    #[doc(alias = "cuCtxEnablePeerAccess")]
    #[doc(alias = "cudaDeviceEnablePeerAccess")]
    pub fn enable_peer_access(&self, other: &Self) -> Result<()> {
        other.ensure_usable()?;
        let _current = self.enter()?;
        let mode = capture_mode::relaxed(self.driver());
        // SAFETY: both contexts are alive, and this one is current.
        let code = unsafe { self.driver().cuCtxEnablePeerAccess(other.as_raw(), 0) };
        drop(mode);
        // Other code of the process may have enabled it.
        if code != CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED {
            self.check(Call::cuCtxEnablePeerAccess, code)?;
        }
        self.peers().add(other.as_box());
        Ok(())
    }

    /// Whether [`enable_peer_access`](Self::enable_peer_access) has let kernels of this context use
    /// memory of the other. Makes no driver call.
    #[must_use]
    pub fn has_peer_access(&self, other: &Self) -> bool {
        self.peers().has(other.as_box())
    }
}
