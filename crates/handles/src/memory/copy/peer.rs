//! Copies between devices.

use cuda_sys::Call;

use crate::context::{Device, checked};
use crate::error::{Error, Result};
use crate::memory::same_length;
use crate::memory::{Element, Slice};
use crate::stream::Stream;

impl Device {
    /// Whether kernels of this device can use the memory of another one directly. Copies work
    /// either way.
    ///
    /// Calls `cuDeviceCanAccessPeer` (CUDA 4.0).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuDeviceCanAccessPeer")]
    #[doc(alias = "cudaDeviceCanAccessPeer")]
    pub fn can_access(self, other: Self) -> Result<bool> {
        let mut can = 0;
        // SAFETY: the out pointer is valid.
        let code =
            unsafe { self.driver().cuDeviceCanAccessPeer(&raw mut can, self.as_raw(), other.as_raw()) };
        checked(Call::cuDeviceCanAccessPeer, code)?;
        Ok(can != 0)
    }
}

impl Stream {
    /// Copies memory of one context to memory of another, of the same length, in the order of this
    /// stream, which is of one of the two. Streams of the other context have to wait for this one
    /// ([`Stream::wait_for`]) before they use the memory, except for the home of the memory, which
    /// is made to wait here. Waits for nothing on the host.
    ///
    /// Calls `cuMemcpyPeerAsync` (CUDA 4.0).
    ///
    /// # Errors
    /// The lengths differ ([`Length`](crate::Error::Length)), the memory is of one context (then
    /// [`copy`](Self::copy) does it), the stream is of neither
    /// ([`WrongContext`](crate::Error::WrongContext)), it or a home is capturing
    /// ([`Capturing`](crate::Error::Capturing)), or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)). If it is the home's wait that fails, the copy is
    /// enqueued all the same.
    #[doc(alias = "cuMemcpyPeerAsync")]
    #[doc(alias = "cudaMemcpyPeerAsync")]
    pub fn copy_peer<'a, 'b, T: Element>(
        &self,
        source: impl Into<Slice<'a, T>>,
        destination: impl Into<Slice<'b, T>>,
    ) -> Result<()> {
        let (source, destination) = (source.into(), destination.into());
        same_length("the destination of a copy", source.len(), destination.len())?;
        let (from, to) = (source.allocation(), destination.allocation());
        if from.context().is_same(to.context()) {
            return self.copy(source, destination);
        }
        if !from.context().is_same(self.context()) {
            to.context().ensure_same(self.context(), "the stream of a copy between contexts")?;
        }
        if source.size_bytes() == 0 {
            return Ok(());
        }
        const WHAT: &str = "a copy between devices";
        let homes = || [from.home(), to.home()].into_iter().flatten();
        for home in homes() {
            home.refuse_capture(WHAT)?;
        }
        self.refuse_capture(WHAT)?;
        from.ready_across(self)?;
        to.ready_across(self)?;
        self.context().ensure_usable()?;
        let access = self.raw_stream().enqueue()?;
        self.refuse_capture(WHAT)?;
        let bytes = source.size_bytes();
        // SAFETY: both ranges lie in memory of their contexts that lives until after this point of
        // the stream.
        let code = unsafe {
            self.context().driver().cuMemcpyPeerAsync(
                destination.address(),
                to.context().as_raw(),
                source.address(),
                from.context().as_raw(),
                bytes,
                self.as_raw(),
            )
        };
        drop(access);
        self.context().check(Call::cuMemcpyPeerAsync, code)?;
        let elsewhere = homes().filter(|home| home.context().as_raw() != self.context().as_raw());
        elsewhere.map(|home| home.wait_for_uncaptured(self)).fold(Ok(()), Result::<_, Error>::and)
    }
}
