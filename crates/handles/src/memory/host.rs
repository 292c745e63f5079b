//! Memory that host and device both reach: pinned and managed.

use core::fmt;
use core::ops::{Deref, DerefMut, RangeBounds};
use core::ptr::NonNull;
use std::ffi::c_void;

use cuda_sys::{CUdevice_attribute as Attribute, CUmemAttach_flags, CUresult, Call};

use super::allocation::Allocation;
use super::buffer::Buffer;
use super::element::Element;
use super::range::bytes_of;
use super::slice::Slice;
use crate::context::{Context, capture_mode};
use crate::error::{Error, MemoryKind, Result};
use crate::reclaim::host_cache;
use crate::reclaim::{self, HostBlock, HostKind};
use crate::registry::Raw;
use crate::stream::Stream;

/// Pinned or managed memory that the host owns exclusively: it is a slice.
///
/// The driver copies between it and the device without a detour. [`share`] it to use it in kernels,
/// graphs and asynchronous copies. The host cannot view it while it is shared, so no reference of
/// the host ever points to memory that the device writes.
///
/// ```no_run
/// # fn main() -> cuda_handles::Result<()> {
/// # let context = cuda_handles::Device::new(0)?.context()?;
/// # let stream = context.stream()?;
/// # let buffer = stream.zeros::<f32>(4)?;
/// let mut host = context.pinned_zeros::<f32>(4)?;
/// host[0] = 1.0;
/// let shared = host.share();
/// stream.copy(&shared, &buffer)?;
/// stream.synchronize_blocking()?;
/// let host = shared.try_unique().expect("its stream is idle, and nobody else has it");
/// assert_eq!(host[0], 1.0);
/// # Ok(()) }
/// ```
///
/// Dropped memory goes to a cache from which later calls take it;
/// [`reaper::drain`](crate::reaper::drain) frees the cache.
///
/// [`share`]: Self::share
#[doc(alias = "pinned")]
#[doc(alias = "page-locked")]
#[doc(alias = "cudaFreeHost")]
#[doc(alias = "cuMemFreeHost")]
pub struct HostBuffer<T>(pub(super) Buffer<T>);

/// [`HostBuffer`] while the device may use it. Clones share it.
///
/// It can be used like any buffer: [`as_buffer`](Self::as_buffer), [`as_slice`](Self::as_slice).
/// The host reads and writes it by copies in a stream's order.
pub struct SharedHostBuffer<T>(Buffer<T>);

impl Context {
    /// Pinned host memory of `len` elements, all bytes zero.
    ///
    /// Calls `cuMemHostAlloc` (CUDA 2.2), unless the cache has such memory.
    ///
    /// # Errors
    /// The host has not enough memory to pin ([`OutOfHostMemory`](crate::Error::OutOfHostMemory)),
    /// or the driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemHostAlloc")]
    #[doc(alias = "cuMemAllocHost")]
    #[doc(alias = "cudaHostAlloc")]
    #[doc(alias = "cudaMallocHost")]
    #[doc(alias = "pinned")]
    pub fn pinned_zeros<T: Element>(&self, len: usize) -> Result<HostBuffer<T>> {
        HostBuffer::zeros(self, HostKind::Pinned, len)
    }

    /// Managed memory of `len` elements, all bytes zero: it moves to where it is used.
    ///
    /// Calls `cuMemAllocManaged` (CUDA 6.0), unless the cache has such memory.
    ///
    /// # Errors
    /// The host cannot use managed memory while the device is at work
    /// ([`Error::Unsupported`](crate::Error::Unsupported)), there is not enough memory, or the
    /// driver refuses the call.
    #[doc(alias = "cuMemAllocManaged")]
    #[doc(alias = "cudaMallocManaged")]
    #[doc(alias = "unified memory")]
    pub fn managed_zeros<T: Element>(&self, len: usize) -> Result<HostBuffer<T>> {
        // Without this, the host may not touch any managed memory while any kernel runs.
        if self.device().attribute(Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)? == 0 {
            return Err(Error::Unsupported { what: "managed memory that the host may use at any time" });
        }
        HostBuffer::zeros(self, HostKind::Managed, len)
    }
}

impl<T: Element> HostBuffer<T> {
    fn zeros(context: &Context, kind: HostKind, len: usize) -> Result<Self> {
        // SAFETY: filled right below.
        let buffer = unsafe { Self::unfilled(context, kind, len) }?;
        if !buffer.0.is_empty() {
            // SAFETY: the memory has room for that many elements, and no other user.
            unsafe { buffer.start().write_bytes(0, len) };
        }
        Ok(buffer)
    }

    /// Memory whose contents are whatever was there.
    ///
    /// # Safety
    /// All of it is written before it is read: from the driver it comes uninitialised.
    pub(super) unsafe fn unfilled(context: &Context, kind: HostKind, len: usize) -> Result<Self> {
        context.ensure_usable()?;
        let bytes = bytes_of::<T>(len)?;
        let block = if bytes == 0 { None } else { Some(block(context, kind, bytes)?) };
        let start = block.as_ref().map(|block| block.start.get());
        let buffer = Buffer::whole(Allocation::host(context, kind, block, bytes), len);
        if start.is_some_and(|start| !start.cast::<T>().is_aligned()) {
            let (size, align) = (size_of::<T>(), align_of::<T>());
            return Err(Error::Cast { bytes, address: buffer.address(), size, align });
        }
        Ok(Self(buffer))
    }
}

impl<T> HostBuffer<T> {
    /// The first element; dangling if there are no bytes.
    pub(super) fn start(&self) -> *mut T {
        self.0.allocation().host_start().map_or(NonNull::dangling().as_ptr(), <*mut c_void>::cast)
    }

    /// Whether it is pinned or managed.
    #[must_use]
    pub fn kind(&self) -> MemoryKind {
        self.0.allocation().kind()
    }

    /// The context it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.0.allocation().context()
    }

    /// Lets the device use it, and the host no longer look at it.
    #[must_use]
    pub fn share(self) -> SharedHostBuffer<T> {
        SharedHostBuffer(self.0)
    }
}

impl<T: Element> Deref for HostBuffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the memory has that many elements, initialised, and every bit pattern is a value.
        // It has no other owner, and no work uses it.
        unsafe { core::slice::from_raw_parts(self.start(), self.0.len()) }
    }
}

impl<T: Element> DerefMut for HostBuffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.start(), self.0.len()) }
    }
}

impl<T> SharedHostBuffer<T> {
    /// The memory as a buffer, for kernels, copies and graphs.
    #[must_use]
    pub fn as_buffer(&self) -> &Buffer<T> {
        &self.0
    }

    /// All of it, borrowed.
    #[must_use]
    pub fn as_slice(&self) -> Slice<'_, T> {
        self.0.as_slice()
    }

    /// A part of it, borrowed, by elements.
    ///
    /// # Errors
    /// The range does not lie in it ([`Bounds`](crate::Error::Bounds)).
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        self.0.slice(range)
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is pinned or managed.
    #[must_use]
    pub fn kind(&self) -> MemoryKind {
        self.0.allocation().kind()
    }

    /// Makes the memory the host's own again, if there is no other owner (handle, graph,
    /// executable) and all its uses are over. A use by a copy or a fill is known to be over once an
    /// [event](crate::Event) recorded behind it was seen to be reached, by
    /// [`query`](crate::Event::query) or
    /// [`synchronize_blocking`](crate::Event::synchronize_blocking), or its stream was waited for;
    /// otherwise the driver is asked whether the stream is idle. So a stream that goes on with
    /// other work does not hold the memory up.
    ///
    /// Owners that were dropped and are idle do not count, such as an executable whose launches are
    /// over. For them this usually waits some microseconds, and 100 milliseconds at most.
    ///
    /// If this library does not know whether the runs of a dropped executable are over (the stream
    /// of the last one is gone, or other code may launch the executable), the executable counts
    /// until the driver has given it back. The driver does that some 100 µs after the last run. If
    /// it takes more than 100 milliseconds, the answer is that the memory is shared: ask again.
    ///
    /// ```no_run
    /// # fn main() -> cuda_handles::Result<()> {
    /// # let context = cuda_handles::Device::new(0)?.context()?;
    /// # let stream = context.stream()?;
    /// # let buffer = stream.zeros::<f32>(4)?;
    /// let result = context.pinned_zeros::<f32>(4)?.share();
    /// let copied = context.event()?;
    /// stream.copy(&buffer, &result)?;
    /// stream.record(&copied)?;
    /// // More work on the same stream, then:
    /// copied.synchronize_blocking()?;
    /// let result = result.try_unique().expect("the copy is over");
    /// println!("{}", result[0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The memory comes back if it is still shared, a stream that used it has work or is capturing,
    /// the context is lost, or this is a host function.
    #[doc(alias = "cuStreamQuery")]
    pub fn try_unique(mut self) -> Result<HostBuffer<T>, Self> {
        self.catch_up();
        match self.0.sole_allocation().map(Allocation::unshare) {
            Some(true) => Ok(HostBuffer(self.0)),
            _ => Err(self),
        }
    }

    /// The host's own again, once all its uses are over. **Waits** for all that is enqueued by now
    /// on the streams that used it.
    ///
    /// Calls `cuEventRecord` (CUDA 2.0), and `cuEventSynchronize` for each stream whose uses were
    /// not seen to be over.
    ///
    /// # Errors
    /// [`Error::StillShared`](crate::Error::StillShared) if there is another owner: a handle, a
    /// graph, an executable; [`Error::Capturing`](crate::Error::Capturing) if a stream that used it
    /// is capturing; [`Error::ContextLost`](crate::Error::ContextLost); `NOT_PERMITTED` inside a
    /// host function; or the driver refuses the call. The memory comes back with the error.
    #[doc(alias = "cuEventSynchronize")]
    pub fn unique_blocking(mut self) -> Result<HostBuffer<T>, NotUnique<T>> {
        self.catch_up();
        match self.0.sole_allocation().ok_or(Error::StillShared).and_then(Allocation::unshare_blocking) {
            Ok(()) => Ok(HostBuffer(self.0)),
            Err(error) => Err(NotUnique { buffer: self, error }),
        }
    }

    fn catch_up(&self) {
        if !self.0.is_sole() {
            reclaim::catch_up(|| self.0.is_sole());
        }
    }
}

/// Host memory that did not become the host's own, and why.
#[non_exhaustive]
pub struct NotUnique<T> {
    /// The memory.
    pub buffer: SharedHostBuffer<T>,
    /// Why.
    pub error: Error,
}

impl<T> fmt::Debug for NotUnique<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl<T> fmt::Display for NotUnique<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, formatter)
    }
}

impl<T> core::error::Error for NotUnique<T> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl<T> From<NotUnique<T>> for Error {
    fn from(refusal: NotUnique<T>) -> Self {
        refusal.error
    }
}

impl<T: Element> SharedHostBuffer<T> {
    /// The elements, read in the order of `stream`. **Waits** for the stream.
    ///
    /// # Errors
    /// As [`Slice::read_blocking`].
    pub fn read_blocking(&self, stream: &Stream) -> Result<Vec<T>> {
        self.as_slice().read_blocking(stream)
    }

    /// Overwrites the elements in the order of `stream`. **Waits** for the stream.
    ///
    /// # Errors
    /// As [`Slice::write_blocking`].
    pub fn write_blocking(&self, stream: &Stream, elements: &[T]) -> Result<()> {
        self.as_slice().write_blocking(stream, elements)
    }
}

impl<T> Clone for SharedHostBuffer<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<'a, T> From<&'a SharedHostBuffer<T>> for Slice<'a, T> {
    fn from(buffer: &'a SharedHostBuffer<T>) -> Self {
        buffer.as_slice()
    }
}

impl<T> fmt::Debug for HostBuffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HostBuffer({:?}, {:?})", self.kind(), self.0)
    }
}

impl<T> fmt::Debug for SharedHostBuffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SharedHostBuffer({:?}, {:?})", self.kind(), self.0)
    }
}

/// A block of at least `bytes`, from the cache or else the driver.
fn block(context: &Context, kind: HostKind, bytes: usize) -> Result<HostBlock> {
    let room = rounded(bytes);
    if let Some(block) = host_cache::take(context, kind, room) {
        return Ok(block);
    }
    // Pending frees may have filled the cache.
    reclaim::free_pending();
    match host_cache::take(context, kind, room) {
        Some(block) => Ok(block),
        None => allocate(context, kind, bytes, room),
    }
}

/// As [`block`], for callers that hold locks that frees need.
pub(super) fn block_at_once(context: &Context, kind: HostKind, bytes: usize) -> Result<HostBlock> {
    let room = rounded(bytes);
    host_cache::take(context, kind, room).map_or_else(|| allocate(context, kind, bytes, room), Ok)
}

fn allocate(context: &Context, kind: HostKind, asked: usize, room: usize) -> Result<HostBlock> {
    let current = context.enter()?;
    let mode = capture_mode::relaxed(context.driver());
    let (call, code, start) = match kind {
        HostKind::Pinned => ask_pinned(context, room),
        HostKind::Managed => ask_managed(context, room),
        // The memory is there already.
        HostKind::Registered => return Err(Error::Unsupported { what: "allocating registered memory" }),
    };
    drop(mode);
    drop(current);
    if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return Err(Error::OutOfHostMemory { asked, kept: host_cache::kept(context, kind) });
    }
    context.check(call, code)?;
    Ok(HostBlock { context: context.clone(), start: Raw::new(start), bytes: room, kind, owner: None })
}

fn ask_pinned(context: &Context, room: usize) -> (Call, CUresult, *mut c_void) {
    let mut start = core::ptr::null_mut();
    // Every context of the process may use it, at the host's own address.
    let flags = cuda_sys::CU_MEMHOSTALLOC_PORTABLE | cuda_sys::CU_MEMHOSTALLOC_DEVICEMAP;
    // SAFETY: the context is current and the out pointer valid.
    let code = unsafe { context.driver().cuMemHostAlloc(&raw mut start, room, flags) };
    (Call::cuMemHostAlloc, code, start)
}

fn ask_managed(context: &Context, room: usize) -> (Call, CUresult, *mut c_void) {
    let mut address = 0;
    let flags = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL;
    // SAFETY: the context is current and the out pointer valid.
    let code = unsafe { context.driver().cuMemAllocManaged(&raw mut address, room, flags.0) };
    let start = core::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0));
    (Call::cuMemAllocManaged, code, start)
}

/// Sizes in few steps, so that cached blocks fit more often: powers of two up to 1 MiB, and
/// multiples of that.
fn rounded(bytes: usize) -> usize {
    const STEP: usize = 1 << 20;
    const LEAST: usize = 1 << 12;
    if bytes <= STEP { bytes.next_power_of_two().max(LEAST) } else { bytes.next_multiple_of(STEP) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_in_steps() {
        assert_eq!([1, 4096, 4097, 1 << 20].map(rounded), [4096, 4096, 8192, 1 << 20]);
        assert_eq!(rounded((1 << 20) + 1), 2 << 20);
        assert!(rounded(isize::MAX as usize) >= isize::MAX as usize);
    }
}
