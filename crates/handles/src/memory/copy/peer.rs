//! Copies between devices.

use cuda_sys::Call;

use crate::context::{Device, checked};
use crate::error::{Error, MemoryKind, Result};
use crate::memory::same_length;
use crate::memory::{Allocation, Element, Slice};
use crate::stream::{Stream, Work};

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
    /// In a capture the copy becomes a node, and waits for no home; nor do homes wait. Then pooled
    /// memory of the other context needs the access of its pool
    /// ([`MemPool::grant_access`](crate::MemPool::grant_access)).
    ///
    /// Calls `cuMemcpyPeerAsync` (CUDA 4.0), or `cuMemcpyAsync` (CUDA 3.2) in a capture.
    ///
    /// # Errors
    /// The lengths differ ([`Length`](crate::Error::Length)), the memory is of one context (then
    /// [`copy`](Self::copy) does it), the stream is of neither
    /// ([`WrongContext`](crate::Error::WrongContext)), it is in a capture of other code, or a home
    /// is capturing and it is not ([`Capturing`](crate::Error::Capturing)), a pool does not grant
    /// access to a captured copy ([`WrongContext`](crate::Error::WrongContext)), or the driver
    /// refuses the call ([`Driver`](crate::Error::Driver)). If it is the home's wait that fails,
    /// the copy is enqueued all the same.
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
        if self.capture_id().is_some() && self.copy_peer_captured(source, destination)? {
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
        // The call names both contexts; whether a third one may be current is not known.
        let current = self.enter_for_reach([from.kind(), to.kind()])?;
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
        drop((current, access));
        self.context().check(Call::cuMemcpyPeerAsync, code)?;
        let elsewhere = homes().filter(|home| home.context().as_raw() != self.context().as_raw());
        elsewhere.map(|home| home.wait_for_uncaptured(self)).fold(Ok(()), Result::<_, Error>::and)
    }

    /// A copy between contexts on a stream in a capture of this library: the driver captures no
    /// `cuMemcpyPeerAsync`, and takes a copy by addresses for one between devices. False if the
    /// capture is over: then nothing was done.
    #[cold]
    fn copy_peer_captured<T>(&self, source: Slice<'_, T>, destination: Slice<'_, T>) -> Result<bool> {
        let memory = [source.allocation(), destination.allocation()];
        for pooled in memory.iter().filter(|memory| memory.kind() == MemoryKind::Pooled) {
            if !pooled.is_reachable_from(self.context())? {
                let what = "the memory of a captured copy";
                return Err(pooled.out_of_reach(what, "its stream", self.context()).into());
            }
        }
        let ready = || match self.capture_id() {
            Some(_) => Err(Error::CapturedFirstUse),
            None => Ok(()),
        };
        let captured = |memory: &Allocation, capture| memory.use_captured_across(self, capture);
        let (access, over) = self.enqueue_by(&memory, ready, captured)?;
        if over.is_some() {
            return Ok(false);
        }
        let bytes = source.size_bytes();
        let work =
            Work::Copy { source: source.address(), destination: destination.address(), bytes: bytes as u64 };
        let _current = self.enter_for_copy(memory.map(|memory| memory.kind()))?;
        access.captured_use(memory, work, None, || {
            let driver = self.context().driver();
            // SAFETY: both ranges lie in memory that lives as long as the graph.
            let code = unsafe {
                driver.cuMemcpyAsync(destination.address(), source.address(), bytes, self.as_raw())
            };
            (Call::cuMemcpyAsync, code)
        })?;
        Ok(true)
    }
}
