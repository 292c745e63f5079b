//! Streams: queues of work of a device.

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use cuda_sys::{CUresult, CUstream, CUstream_flags, Call};
use smallvec::SmallVec;

use crate::capture_mode;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::raw::{Raw, identity};
use crate::reaper::{self, RawStream};
use crate::registry::{Registry, Sharded};

static STREAMS: LazyLock<Registry<Sharded<StreamBox>>> = LazyLock::new(|| Registry::with_map(Sharded::new()));

/// What a stream is created with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamOptions {
    /// Lower numbers go first; 0 is the default and the lowest priority. The driver takes the nearest that the device has.
    pub priority: i32,
    /// Whether it and the legacy default stream wait for each other. Default: no.
    #[doc(alias = "CU_STREAM_NON_BLOCKING")]
    pub blocking_with_legacy: bool,
}

struct StreamBox {
    stream: Arc<RawStream>,
    /// Counts what was enqueued that somebody may ask about later: an allocation takes the number after its own call as its ticket.
    issued: AtomicU64,
    /// The highest number up to which the host has seen everything done.
    synced: AtomicU64,
    /// For other streams, by their number: up to which of their tickets this one has been made to wait.
    waited: Mutex<SmallVec<[(u64, u64); 4]>>,
}

/// Of how many other streams a stream remembers that it has waited for them.
const REMEMBERED: usize = 32;

/// A stream. Work enqueued on it runs in order; it is destroyed with its last handle, once its work is done.
#[derive(Clone)]
pub struct Stream(Arc<StreamBox>);

identity!(Stream);

/// Something to enqueue on.
pub trait AsStream {
    /// The stream.
    fn as_stream(&self) -> &Stream;
}

impl AsStream for Stream {
    #[inline]
    fn as_stream(&self) -> &Stream {
        self
    }
}

impl<S: AsStream + ?Sized> AsStream for &S {
    #[inline]
    fn as_stream(&self) -> &Stream {
        (**self).as_stream()
    }
}

impl Context {
    /// A stream with the default options.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with(StreamOptions::default())
    }

    /// A stream with these options.
    ///
    /// Stands on `cuStreamCreateWithPriority`, CUDA 5.5.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuStreamCreate")]
    #[doc(alias = "cuStreamCreateWithPriority")]
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
        let stream = Stream::wrap(RawStream::new(self, raw, true));
        STREAMS.register(raw.addr(), Arc::downgrade(&stream.0));
        Ok(stream)
    }

    /// Waits until all work of the context is done.
    ///
    /// Stands on `cuCtxSynchronize`, CUDA 2.0. The driver allows this to nobody while a stream of the context is capturing, and invalidates the
    /// capture. So it is refused while a stream made here is; captures of other code's streams are not seen. Prefer
    /// [`Stream::synchronize_blocking`].
    ///
    /// # Errors
    /// A stream of the context is capturing, or what the driver answers.
    #[doc(alias = "cuCtxSynchronize")]
    pub fn synchronize_blocking(&self) -> Result<()> {
        let streams: Vec<_> =
            STREAMS.all().into_iter().map(Stream).filter(|one| one.context() == self).collect();
        self.ensure_usable()?;
        streams.iter().try_for_each(|stream| stream.refuse_capture("waiting for a context"))?;
        let issued: Vec<_> = streams.iter().map(Stream::issued).collect();
        self.wait()?;
        streams.iter().zip(issued).for_each(|(stream, issued)| stream.set_synced(issued));
        Ok(())
    }
}

impl Stream {
    fn wrap(stream: RawStream) -> Self {
        Self(Arc::new(StreamBox {
            stream: Arc::new(stream),
            issued: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            waited: Mutex::new(SmallVec::new()),
        }))
    }

    /// The stream behind a raw handle: the owner that this library has for it, or else a handle that does not own it.
    ///
    /// # Safety
    /// - `raw` is a stream of `context`, neither the legacy default stream nor the per-thread one.
    /// - It lives until every clone of the result is dropped. The last one is not dropped inside a host function.
    ///
    /// # Errors
    /// The stream is known and belongs to another context, or the value is one of the default streams.
    pub unsafe fn from_raw(context: &Context, raw: CUstream) -> Result<Self> {
        // Null, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD stand for different streams at different times.
        if raw.addr() <= 2 {
            return Err(Error::Unknown { what: "stream of its own", raw: raw.addr() });
        }
        if let Some(known) = STREAMS.find(&raw.addr()).map(Self) {
            context.ensure_same(known.context(), "the stream")?;
            return Ok(known);
        }
        Ok(Self::wrap(RawStream::new(context, raw, false)))
    }

    /// The driver's own handle.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUstream {
        self.0.stream.raw()
    }

    /// The context.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        self.0.stream.context()
    }

    /// A number that no other stream of this process has or gets. It is this library's, not the driver's.
    #[must_use]
    #[inline]
    pub fn id(&self) -> u64 {
        self.0.stream.id()
    }

    /// Waits until all work enqueued so far is done.
    ///
    /// Stands on `cuStreamSynchronize`, CUDA 2.0.
    ///
    /// # Errors
    /// The stream is capturing, or what the driver answers; a fault of earlier work shows here.
    #[doc(alias = "cuStreamSynchronize")]
    pub fn synchronize_blocking(&self) -> Result<()> {
        self.context().ensure_usable()?;
        self.0.stream.refuse_capture("waiting for a stream")?;
        self.wait_until_done()
    }

    /// The wait itself, where it is known that the stream is not capturing.
    pub(crate) fn wait_until_done(&self) -> Result<()> {
        let issued = self.issued();
        let _mode = capture_mode::relaxed(self.context().driver());
        // SAFETY: the stream is alive.
        let code = unsafe { self.context().driver().cuStreamSynchronize(self.as_raw()) };
        self.context().check(Call::cuStreamSynchronize, code)?;
        self.set_synced(issued);
        Ok(())
    }

    /// Whether all work enqueued so far is done.
    ///
    /// Stands on `cuStreamQuery`, CUDA 2.0.
    ///
    /// # Errors
    /// The stream is capturing, or what the driver answers; a fault of earlier work shows here.
    #[doc(alias = "cuStreamQuery")]
    pub fn query(&self) -> Result<bool> {
        self.context().ensure_usable()?;
        self.0.stream.refuse_capture("querying a stream")?;
        let issued = self.issued();
        let _mode = capture_mode::relaxed(self.context().driver());
        // SAFETY: the stream is alive.
        match unsafe { self.context().driver().cuStreamQuery(self.as_raw()) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => {
                self.context().check(Call::cuStreamQuery, code)?;
                self.set_synced(issued);
                Ok(true)
            }
        }
    }

    /// Records `event`: it is reached when the work enqueued so far is done.
    ///
    /// Stands on `cuEventRecord`, CUDA 2.0.
    ///
    /// # Errors
    /// The event is of another context, or what the driver answers.
    #[doc(alias = "cuEventRecord")]
    pub fn record(&self, event: &Event) -> Result<()> {
        self.context().ensure_usable()?;
        self.context().ensure_same(event.context(), "the event")?;
        // SAFETY: stream and event are alive.
        let code = unsafe { self.context().driver().cuEventRecord(event.as_raw(), self.as_raw()) };
        self.context().check(Call::cuEventRecord, code)
    }

    /// Makes work enqueued from now on wait until `event`, as recorded last, is reached. The event may be of another context; it may be
    /// dropped or recorded anew right afterwards.
    ///
    /// Stands on `cuStreamWaitEvent`, CUDA 3.2.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuStreamWaitEvent")]
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.context().ensure_usable()?;
        // SAFETY: stream and event are alive.
        let code = unsafe { self.context().driver().cuStreamWaitEvent(self.as_raw(), event.as_raw(), 0) };
        self.context().check(Call::cuStreamWaitEvent, code)
    }

    /// Makes work enqueued here from now on wait for all that is enqueued on `other` so far.
    ///
    /// Stands on `cuEventRecord` and `cuStreamWaitEvent`, one call each, with an event that `other` keeps for this.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn wait_for(&self, other: &Self) -> Result<()> {
        self.context().ensure_usable()?;
        if self.id() == other.id() {
            return Ok(());
        }
        let issued = other.issued();
        other.0.stream.order_before(self.as_raw())?;
        self.remember_wait(other.id(), issued);
        Ok(())
    }

    /// Makes this stream wait for the point of `home` with this ticket, unless it has. Refused while either is capturing.
    pub(crate) fn wait_for_ticket(&self, home: &Self, ticket: u64) -> Result<()> {
        if self.has_waited(home.id(), ticket) {
            return Ok(());
        }
        self.0.stream.refuse_capture("the first use of memory of another stream")?;
        let issued = home.issued();
        home.0.stream.order_before_uncaptured(self.as_raw(), "handing memory to another stream")?;
        self.remember_wait(home.id(), issued);
        Ok(())
    }

    fn has_waited(&self, id: u64, ticket: u64) -> bool {
        let waited = self.0.waited.lock().unwrap_or_else(PoisonError::into_inner);
        waited.iter().any(|&(other, up_to)| other == id && up_to >= ticket)
    }

    fn remember_wait(&self, id: u64, up_to: u64) {
        let mut waited = self.0.waited.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = waited.iter_mut().find(|(other, _)| *other == id) {
            entry.1 = entry.1.max(up_to);
            return;
        }
        if waited.len() == REMEMBERED {
            waited.remove(0);
        }
        waited.push((id, up_to));
    }

    /// An error if the stream is capturing: `what` cannot be captured.
    pub(crate) fn refuse_capture(&self, what: &'static str) -> Result<()> {
        self.0.stream.refuse_capture(what)
    }

    /// Whether the stream is capturing; for a drop, which takes a failure for no.
    pub(crate) fn is_capturing(&self) -> bool {
        self.0.stream.is_capturing().unwrap_or(false)
    }

    /// A ticket for what was enqueued just now: taken **after** the call, so that whoever reads this count or a higher one and then waits
    /// for the stream has waited for that call.
    pub(crate) fn ticket(&self) -> u64 {
        self.0.issued.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn issued(&self) -> u64 {
        self.0.issued.load(Ordering::Acquire)
    }

    /// All up to this count is done.
    fn set_synced(&self, up_to: u64) {
        self.0.synced.fetch_max(up_to, Ordering::AcqRel);
    }

    /// Whether the host has seen what has this ticket done.
    #[inline]
    pub(crate) fn has_synced(&self, ticket: u64) -> bool {
        self.0.synced.load(Ordering::Acquire) >= ticket
    }

    /// The driver's stream behind it.
    #[inline]
    pub(crate) fn raw_stream(&self) -> &Arc<RawStream> {
        &self.0.stream
    }
}

impl Drop for StreamBox {
    fn drop(&mut self) {
        if self.stream.is_owned() {
            STREAMS.forget(Raw::new(self.stream.raw()).key(), self);
        }
        reaper::close(&self.stream);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Stream")
            .field("id", &self.id())
            .field("raw", &Raw::new(self.as_raw()))
            .finish()
    }
}
