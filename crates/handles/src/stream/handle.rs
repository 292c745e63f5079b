//! Streams: queues of work of a device.

use core::fmt;
use core::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};

use cuda_sys::{CUresult, CUstream, CUstream_flags, Call};
use smallvec::SmallVec;

use super::event::Event;
use super::open_captures;
use super::recorded::Recorded;
use crate::context::{Context, capture_mode};
use crate::error::{Error, Result};
use crate::raw_stream::{self, RawStream};
use crate::reclaim::{self, Staging};
use crate::registry::{Raw, Registry, Sharded, identity};
use crate::sync::process;

static STREAMS: LazyLock<Registry<Sharded<StreamBox>>> = LazyLock::new(|| Registry::with_map(Sharded::new()));

/// What a stream is created with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamOptions {
    /// Lower numbers go first; 0 is the default and the lowest priority. The driver takes the
    /// nearest that the device has; see [`Context::stream_priorities`].
    pub priority: i32,
    /// Whether it and the legacy default stream wait for each other. Default: no.
    #[doc(alias = "CU_STREAM_NON_BLOCKING")]
    pub blocking_with_legacy: bool,
}

struct StreamBox {
    stream: Arc<RawStream>,
    /// `None` for a stream that is not ours: what it was created with is not known.
    options: Option<StreamOptions>,
    /// Counts what was enqueued that somebody may ask about later: an allocation takes the number
    /// after its own call as its ticket.
    issued: AtomicU64,
    /// For other streams, by their number: up to which of their tickets this one has been made to
    /// wait.
    waited: Mutex<SmallVec<[(u64, u64); 4]>>,
    /// Pinned memory for small writes.
    staging: OnceLock<Arc<Staging>>,
}

/// Of how many other streams a stream remembers that it has waited for them.
const REMEMBERED: usize = 32;

const FIRST_USE: &str = "the first use of memory of another stream";

/// A stream. Work enqueued on it runs in order; it is destroyed with its last handle, once its work
/// is done.
#[derive(Clone)]
pub struct Stream(Arc<StreamBox>);

identity!(Stream);

/// A stream that may be gone.
#[doc(hidden)]
#[derive(Clone)]
pub struct WeakStream(Weak<StreamBox>);

impl WeakStream {
    /// A handle, if there is one still.
    #[must_use]
    pub fn upgrade(&self) -> Option<Stream> {
        self.0.upgrade().map(Stream)
    }
}

impl fmt::Debug for WeakStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WeakStream")
    }
}

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
        let stream = Stream::wrap(RawStream::created(self, raw, options.blocking_with_legacy), Some(options));
        STREAMS.register(raw.addr(), Arc::downgrade(&stream.0));
        Ok(stream)
    }

    /// The priorities that streams can have, from the most urgent (the lowest number) to the least
    /// urgent one.
    ///
    /// Stands on `cuCtxGetStreamPriorityRange`, CUDA 5.5.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuCtxGetStreamPriorityRange")]
    pub fn stream_priorities(&self) -> Result<RangeInclusive<i32>> {
        let _current = self.enter()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the context is current and the out pointers are valid.
        let code = unsafe { self.driver().cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest) };
        self.check(Call::cuCtxGetStreamPriorityRange, code)?;
        Ok(greatest..=least)
    }

    /// Waits until all work is done that was enqueued on the streams of this context that this
    /// library created and somebody holds; for one after the other as
    /// [`Stream::synchronize_blocking`]. Adopted streams and other code's are waited for with their
    /// own handles: the driver's wait for a whole context would invalidate whatever somebody
    /// captures in it.
    ///
    /// Stands on `cuStreamSynchronize`, CUDA 2.0.
    ///
    /// # Errors
    /// A stream of the context is capturing (nothing is waited for then), or what the driver
    /// answers.
    #[doc(alias = "cuCtxSynchronize")]
    pub fn synchronize_blocking(&self) -> Result<()> {
        self.ensure_usable()?;
        let of_context = |stream: &Stream| stream.context().as_raw() == self.as_raw();
        let streams: Vec<_> = STREAMS.all().into_iter().map(Stream).filter(of_context).collect();
        if open_captures::any_in(self) {
            return Err(Error::Capturing { what: "waiting for a context" });
        }
        streams.iter().try_for_each(|stream| stream.refuse_capture("waiting for a context"))?;
        streams.iter().try_for_each(Stream::synchronize_blocking)
    }
}

impl Stream {
    fn wrap(stream: RawStream, options: Option<StreamOptions>) -> Self {
        let stream = Arc::new(stream);
        raw_stream::note(&stream);
        Self(Arc::new(StreamBox {
            stream,
            options,
            issued: AtomicU64::new(0),
            waited: Mutex::new(SmallVec::new()),
            staging: OnceLock::new(),
        }))
    }

    /// The stream behind a raw handle: the owner that this library has for it, or else a handle
    /// that does not own it.
    ///
    /// # Safety
    /// - `raw` is a stream of `context`, neither the legacy default stream nor the per-thread one.
    /// - It lives until every clone of the result is dropped. Buffers whose home it is hold clones,
    ///   and so do captures and graphs that use such buffers; what of these was dropped may hold
    ///   them until [`reaper::pending`](crate::reaper::pending) is 0. The last clone is not dropped
    ///   inside a host function, nor while the stream is capturing.
    /// - Whoever begins or ends a capture of it by other means does so while nobody enqueues on it
    ///   through the result.
    ///
    /// # Errors
    /// The stream is known and belongs to another context, or the value is one of the default
    /// streams.
    pub unsafe fn from_raw(context: &Context, raw: CUstream) -> Result<Self> {
        // Null, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD stand for different streams at different
        // times.
        process::ensure_not_forked()?;
        if raw.addr() <= 2 {
            return Err(Error::Unknown { what: "stream of its own", raw: raw.addr() });
        }
        if let Some(known) = STREAMS.find(&raw.addr()).map(Self) {
            context.ensure_same(known.context(), "the stream")?;
            return Ok(known);
        }
        Ok(Self::wrap(RawStream::adopted(context, raw), None))
    }

    /// The driver's own handle, to let other code capture the stream or make others wait for its
    /// events: from now on the driver is asked before every call whether the stream is capturing,
    /// as for an adopted one. For other calls [`as_raw`](Self::as_raw) will do.
    ///
    /// Whoever begins or ends a capture of it by other means does so while nobody enqueues on it
    /// through this handle or its clones: a blocking copy to or from host memory, caught by such a
    /// capture, would run again when that memory is gone.
    #[must_use]
    pub fn lend(&self) -> CUstream {
        self.0.stream.set_foreign();
        self.as_raw()
    }

    /// The driver's own handle. Capture the stream with it only after [`lend`](Self::lend): what
    /// this library does not know of, it cannot leave alone.
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

    /// What it was created with, as it was asked for; `None` if somebody else created it. No driver
    /// call: the driver's own questions for these invalidate a capture.
    #[must_use]
    pub fn options(&self) -> Option<StreamOptions> {
        self.0.options
    }

    /// A number that no other stream of this process has or gets. It is this library's, not the
    /// driver's.
    #[must_use]
    #[inline]
    pub fn id(&self) -> u64 {
        self.0.stream.id()
    }

    /// Waits until all work enqueued so far is done. A capture of this stream can begin only
    /// afterwards. Where one is to begin already, or to draw this stream in, it goes first, for
    /// which this waits a second at most.
    ///
    /// Stands on `cuStreamSynchronize`, CUDA 2.0.
    ///
    /// # Errors
    /// The stream is capturing, or what the driver answers; a fault of earlier work shows here.
    #[doc(alias = "cuStreamSynchronize")]
    pub fn synchronize_blocking(&self) -> Result<()> {
        self.context().ensure_usable()?;
        self.0.stream.step_aside();
        let _turn = self.0.stream.enqueue()?;
        self.0.stream.refuse_capture("waiting for a stream")?;
        self.context().refuse_in_callback()?;
        self.wait_until_done()
    }

    /// The wait itself, with the turn held, not in a host function, and where it is known that the
    /// stream is not capturing: a capture that began now would make it fail.
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
        let _turn = self.0.stream.enqueue()?;
        self.0.stream.refuse_capture("querying a stream")?;
        let _mode = capture_mode::relaxed(self.context().driver());
        // SAFETY: the stream is alive.
        match unsafe { self.context().driver().cuStreamQuery(self.as_raw()) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            // Not noted as a wait is: the driver has yet to look after frees.
            code => self.context().check(Call::cuStreamQuery, code).map(|()| true),
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
        let mut recorded = event.recorded()?;
        let turn = self.0.stream.enqueue()?;
        let place = if turn.signs() == 0 { Recorded::Plain } else { self.place_of_record()? };
        if place != Recorded::Plain {
            event.set_in_graphs();
        }
        // Before the call: all that has a ticket up to this was enqueued.
        let issued = self.issued();
        // SAFETY: stream and event are alive.
        let code = unsafe { self.context().driver().cuEventRecord(event.as_raw(), self.as_raw()) };
        self.context().check(Call::cuEventRecord, code)?;
        match place {
            Recorded::Plain => recorded.set_behind(self.0.stream.reached(), issued),
            place => recorded.set(place),
        }
        Ok(())
    }

    /// Where an event is recorded now, on a stream that may be capturing. With a turn.
    #[cold]
    fn place_of_record(&self) -> Result<Recorded> {
        Ok(match self.0.stream.capture() {
            0 if self.0.stream.is_foreign() && self.0.stream.ask_capturing()? => Recorded::Foreign,
            0 => Recorded::Plain,
            word => Recorded::Captured(word),
        })
    }

    /// Makes work enqueued from now on wait until `event`, as recorded last, is reached. The event
    /// may be of another context; it may be dropped or recorded anew right afterwards. An event
    /// that was recorded in a capture going on draws this stream into it, once nobody waits for
    /// this stream any more.
    ///
    /// Stands on `cuStreamWaitEvent`, CUDA 3.2.
    ///
    /// # Errors
    /// The stream is capturing and the event was not recorded in the same capture; the event is of
    /// a capture that is over; this is a host function and somebody uses the stream that would be,
    /// or may be, drawn in (`NOT_PERMITTED`); or what the driver answers.
    #[doc(alias = "cuStreamWaitEvent")]
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.context().ensure_usable()?;
        let call = || {
            // SAFETY: stream and event are alive.
            let code = unsafe { self.context().driver().cuStreamWaitEvent(self.as_raw(), event.as_raw(), 0) };
            self.context().check(Call::cuStreamWaitEvent, code)
        };
        let attempt = || {
            let recorded = event.recorded()?;
            open_captures::wait(&self.0.stream, event.certain(recorded.place()), call)
        };
        self.0.stream.insist(|| attempt().transpose())?
    }

    /// Makes work enqueued here from now on wait for all that is enqueued on `other` so far. If
    /// `other` is capturing, this stream is drawn into the capture.
    ///
    /// Stands on `cuEventRecord` and `cuStreamWaitEvent`, one call each, with an event that `other`
    /// keeps for this.
    ///
    /// # Errors
    /// This stream is in a capture that `other` is not in; this is a host function and somebody
    /// uses the stream that would be drawn in (`NOT_PERMITTED`); or what the driver answers.
    pub fn wait_for(&self, other: &Self) -> Result<()> {
        self.context().ensure_usable()?;
        if self.id() == other.id() {
            return Ok(());
        }
        let issued = other.issued();
        let mut plain = false;
        let mut attempt = || {
            let foreign = other.0.stream.is_foreign() && other.0.stream.ask_capturing()?;
            other.0.stream.order_before(|marker, word| {
                let recorded = match word {
                    0 if foreign => Recorded::Foreign,
                    0 => Recorded::Plain,
                    word => Recorded::Captured(word),
                };
                plain = recorded == Recorded::Plain;
                match open_captures::wait(&self.0.stream, recorded, || self.0.stream.wait_marker(marker)) {
                    // The capture has just ended: `other` is in none soon.
                    Err(Error::CapturedEvent) => Ok(None),
                    waits => waits,
                }
            })
        };
        self.0.stream.insist(|| attempt().transpose())??;
        if plain {
            self.remember_wait(other.id(), issued);
        }
        Ok(())
    }

    /// As [`wait_for`](Self::wait_for), but refused while either of the two is capturing, so that
    /// no stream is drawn into a capture.
    ///
    /// # Errors
    /// One of the streams is capturing, or what the driver answers.
    pub fn wait_for_uncaptured(&self, other: &Self) -> Result<()> {
        self.context().ensure_usable()?;
        if self.id() == other.id() {
            return Ok(());
        }
        let issued = other.issued();
        let (what, waiting) = ("being waited for by another stream", "waiting for another stream");
        other.0.stream.order_both_uncaptured(&self.0.stream, what, waiting)?;
        self.remember_wait(other.id(), issued);
        Ok(())
    }

    /// Makes this stream wait for the point of `home` with this ticket, unless it has. Refused
    /// while either is capturing.
    pub(crate) fn wait_for_ticket(&self, home: &Self, ticket: u64) -> Result<()> {
        if self.has_waited(home.id(), ticket) {
            return Ok(());
        }
        let issued = home.issued();
        let (what, waiting) = ("handing memory to another stream", FIRST_USE);
        home.0.stream.order_both_uncaptured(&self.0.stream, what, waiting).map_err(first_use)?;
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

    /// An error if the stream is capturing: `what` cannot be captured. No driver call unless the
    /// stream is adopted or was reached by a capture of somebody else.
    ///
    /// # Errors
    /// [`Error::Capturing`], or what the driver answers.
    #[inline]
    pub fn refuse_capture(&self, what: &'static str) -> Result<()> {
        process::ensure_not_forked()?;
        self.0.stream.refuse_capture(what)
    }

    /// Whether the stream is capturing; for a drop, which takes a failure for no.
    pub(crate) fn is_capturing(&self) -> bool {
        self.0.stream.is_capturing().unwrap_or(false)
    }

    /// A ticket for what was enqueued just now: taken **after** the call, so that whoever reads
    /// this count or a higher one and then waits for the stream has waited for that call.
    pub(crate) fn ticket(&self) -> u64 {
        self.0.stream.set_home();
        self.0.issued.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn issued(&self) -> u64 {
        self.0.issued.load(Ordering::Acquire)
    }

    /// All up to this count is done.
    fn set_synced(&self, up_to: u64) {
        self.0.stream.set_synced(up_to);
    }

    /// Whether the host has seen what has this ticket done.
    #[inline]
    pub(crate) fn has_synced(&self, ticket: u64) -> bool {
        self.0.stream.has_synced(ticket)
    }

    /// Pinned memory for small writes.
    pub(crate) fn staging(&self) -> &Staging {
        self.0.staging.get_or_init(|| Staging::new(&self.0.stream))
    }

    /// It, without keeping it.
    #[doc(hidden)]
    #[must_use]
    pub fn downgrade(&self) -> WeakStream {
        WeakStream(Arc::downgrade(&self.0))
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
        reclaim::close(&self.stream);
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

/// Says of a first use that it could not be captured what settles it. That the home captures is
/// another matter.
#[cold]
fn first_use(error: Error) -> Error {
    match error {
        Error::Capturing { what } if what == FIRST_USE => Error::CapturedFirstUse,
        other => other,
    }
}
