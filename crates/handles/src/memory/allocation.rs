//! Owners of device memory, and when another stream may use it.

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cuda_sys::{CUdeviceptr, CUresult, Call};

use crate::capture_mode;
use crate::error::{Error, Result};
use crate::reaper::{self, Free, Node};
use crate::stream::Stream;

/// Used off its home: freeing it takes a fence.
const SHARED: u64 = 1;
/// Its allocation point has been reached: no stream has to wait for it.
const SETTLED: u64 = 2;
/// Above the bits is the number of the stream that was made ready last.
const LAST: u32 = 2;

/// Device memory with its **home**: the stream in whose order it was allocated and first written, and will be freed.
///
/// The home may use it at once. Another stream has to wait once until the home has reached the allocation, unless the host has seen that already
/// (*settled*: [`Stream::synchronize_blocking`] on the home does it). Whoever enqueues work that uses the memory calls
/// [`ready_on`](Self::ready_on) first; everything safe in these crates does.
pub struct Allocation {
    address: CUdeviceptr,
    bytes: usize,
    home: Stream,
    /// The home's count when the memory had been allocated and first written.
    ticket: u64,
    state: AtomicU64,
    /// The reaper's order to free it, made when it is first shared: the drop allocates nothing then.
    order: OnceLock<Box<Node<Free>>>,
}

impl Allocation {
    /// Allocates pooled memory on a stream. Nothing is allocated for 0 bytes.
    pub(super) fn new(home: &Stream, bytes: usize) -> Result<Self> {
        home.context().ensure_usable()?;
        let address = if bytes == 0 { 0 } else { allocate(home, bytes)? };
        let mut allocation = Self {
            address,
            bytes,
            home: home.clone(),
            ticket: 0,
            state: AtomicU64::new(0),
            order: OnceLock::new(),
        };
        allocation.stamp();
        Ok(allocation)
    }

    /// Counts what was enqueued on the home just now as part of the allocation.
    pub(super) fn stamp(&mut self) {
        if self.bytes == 0 {
            *self.state.get_mut() = SETTLED;
        } else {
            self.ticket = self.home.ticket();
        }
    }

    /// Where it starts; 0 if it has no bytes.
    #[must_use]
    #[inline]
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// Its size in bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The stream in whose order it was allocated and will be freed.
    #[must_use]
    #[inline]
    pub fn home(&self) -> &Stream {
        &self.home
    }

    /// Whether the host has seen that the allocation point was reached. No driver call.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.state.load(Ordering::Acquire) & SETTLED != 0 || self.home.has_synced(self.ticket)
    }

    /// Whether it was made ready for a stream other than its home.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.state.load(Ordering::Acquire) & SHARED != 0
    }

    /// Makes the memory usable by what is enqueued on `stream` next, and lets it be freed only after that. On the home, and wherever it was
    /// called before for a settled allocation or for this stream last, it costs a few loads and no driver call; else `stream` is made to wait
    /// for the home, once.
    ///
    /// # Errors
    /// `stream` is of another context; it would have to wait and one of the two is capturing; or what the driver answers.
    #[inline]
    pub fn ready_on(&self, stream: &Stream) -> Result<()> {
        if stream.id() == self.home.id() {
            return Ok(());
        }
        let state = self.state.load(Ordering::Acquire);
        if state >> LAST == stream.id() {
            return Ok(());
        }
        self.share_with(stream, state)
    }

    fn share_with(&self, stream: &Stream, state: u64) -> Result<()> {
        self.home.context().ensure_same(stream.context(), "the stream")?;
        const BOTH: u64 = SHARED | SETTLED;
        if state & BOTH == BOTH && stream.raw_stream().is_in_fence() || self.bytes == 0 {
            return Ok(());
        }
        stream.context().ensure_usable()?;
        reaper::join(stream.raw_stream());
        self.order.get_or_init(|| self.order());
        let settled = self.is_settled();
        if !settled {
            stream.wait_for_ticket(&self.home, self.ticket)?;
        }
        let bits = SHARED | if settled { SETTLED } else { 0 };
        let mark = |old: u64| Some(stream.id() << LAST | old & BOTH | bits);
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, mark);
        Ok(())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let context = self.home.context();
        if self.bytes == 0 || !reaper::may_call(context) {
            return;
        }
        if *self.state.get_mut() & SHARED != 0 {
            return self.free_later();
        }
        let mode = capture_mode::relaxed(context.driver());
        // SAFETY: the memory is ours, and only its home has used it: every use is in front of this point.
        let code = unsafe { context.driver().cuMemFreeAsync(self.address, self.home.as_raw()) };
        drop(mode);
        if code == CUresult::CUDA_ERROR_NOT_PERMITTED {
            return self.free_later();
        }
        match context.check(Call::cuMemFreeAsync, code) {
            Err(Error::Driver { .. }) if self.home.is_capturing() => self.free_later(),
            Err(error) => reaper::report("freeing a buffer", error),
            Ok(()) => {}
        }
    }
}

impl Allocation {
    fn order(&self) -> Box<Node<Free>> {
        Node::new(Free { address: self.address, home: Arc::clone(self.home.raw_stream()) })
    }

    fn free_later(&mut self) {
        let order = self.order.take().unwrap_or_else(|| self.order());
        reaper::push_free(order);
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Allocation")
            .field("address", &format_args!("{:#x}", self.address))
            .field("bytes", &self.bytes)
            .field("home", &self.home.id())
            .field("settled", &self.is_settled())
            .field("shared", &self.is_shared())
            .finish()
    }
}

/// The driver's allocation; when memory is short, what waits to be freed is freed first.
fn allocate(home: &Stream, bytes: usize) -> Result<CUdeviceptr> {
    home.refuse_capture("allocating a buffer")?;
    let context = home.context();
    let mut address = 0;
    let mut attempt = || {
        let _mode = capture_mode::relaxed(context.driver());
        // SAFETY: the stream is alive and the out pointer valid.
        unsafe { context.driver().cuMemAllocAsync(&raw mut address, bytes, home.as_raw()) }
    };
    let mut code = attempt();
    if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        reaper::free_pending();
        code = attempt();
    }
    if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        let (free, total) = context.memory_info().unwrap_or((0, 0));
        return Err(Error::OutOfMemory { asked: bytes, free, total });
    }
    context.check(Call::cuMemAllocAsync, code)?;
    Ok(address)
}
