//! Streams: queues of work of a device.

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use cuda_sys::CUstream;
use smallvec::SmallVec;

use super::options::StreamOptions;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::raw_stream::{self, RawStream};
use crate::reclaim::{self, Staging};
use crate::registry::{Raw, Registry, Sharded, identity};
use crate::sync::{Lock, Rank, process};

pub(super) static STREAMS: LazyLock<Registry<Sharded<StreamBox>>> =
    LazyLock::new(|| Registry::with_map(Sharded::new()));

pub(super) struct StreamBox {
    pub(super) stream: Arc<RawStream>,
    /// `None` for an adopted stream: its options are not known.
    pub(super) options: Option<StreamOptions>,
    /// Counts calls that may be asked about later: an allocation takes the count after its own call
    /// as its ticket.
    pub(super) issued: AtomicU64,
    /// For other streams, by number: the highest of their tickets that this stream was made to wait
    /// for.
    pub(super) waited: Lock<SmallVec<[(u64, u64); 4]>>,
    /// Pinned memory for small writes.
    pub(super) staging: OnceLock<Arc<Staging>>,
}

/// A stream. Work enqueued on it runs in order; it is destroyed with its last handle, once its work
/// is done.
#[derive(Clone)]
pub struct Stream(pub(super) Arc<StreamBox>);

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

impl Stream {
    pub(super) fn wrap(stream: RawStream, options: Option<StreamOptions>) -> Self {
        let stream = Arc::new(stream);
        raw_stream::note(&stream);
        Self(Arc::new(StreamBox {
            stream,
            options,
            issued: AtomicU64::new(0),
            waited: Lock::new(Rank::StreamWaits, SmallVec::new()),
            staging: OnceLock::new(),
        }))
    }

    /// The stream behind a raw handle: its owner, if this library knows one, or else a handle that
    /// does not own the stream.
    ///
    /// # Safety
    /// - `raw` is a stream of `context`, neither the legacy default stream nor the per-thread one.
    /// - It lives until every clone of the result is dropped. Buffers with this home hold clones,
    ///   and so do captures and graphs that use such buffers; those that were dropped may hold them
    ///   until [`reaper::pending`](crate::reaper::pending) is 0. The last clone is not dropped
    ///   inside a host function, nor while the stream is capturing.
    /// - Other code begins or ends a capture of it only while no thread enqueues on it through the
    ///   result.
    ///
    /// # Errors
    /// The stream is known and belongs to another context
    /// ([`WrongContext`](crate::Error::WrongContext)), or the value is one of the default streams.
    pub unsafe fn from_raw(context: &Context, raw: CUstream) -> Result<Self> {
        // Null, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD name different streams at different
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
    /// Other code begins or ends a capture of it only while no thread enqueues on it through this
    /// handle or its clones: a blocking copy to or from host memory, caught by such a capture,
    /// would run again when that memory is gone.
    #[must_use]
    pub fn lend(&self) -> CUstream {
        self.0.stream.set_foreign();
        self.as_raw()
    }

    /// The driver's own handle. Capture the stream with it only after [`lend`](Self::lend): this
    /// library can respect only captures that it knows of.
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

    /// The options it was created with; `None` if other code created it. Makes no driver call: the
    /// driver's own queries invalidate a capture.
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

    /// An error if the stream is capturing: `what` cannot be captured. Makes no driver call unless
    /// the stream is adopted or was reached by a capture of other code.
    ///
    /// # Errors
    /// [`Error::Capturing`](crate::Error::Capturing), or the driver refuses the call.
    #[inline]
    pub fn refuse_capture(&self, what: &'static str) -> Result<()> {
        process::ensure_not_forked()?;
        self.0.stream.refuse_capture(what)
    }

    /// Whether the stream is capturing; for a drop, which takes a failure for no.
    pub(crate) fn is_capturing(&self) -> bool {
        self.0.stream.is_capturing().unwrap_or(false)
    }

    /// A ticket for the call that was enqueued just now. It is taken **after** the call, so a
    /// thread that reads this count or a higher one and then waits for the stream has waited for
    /// that call.
    pub(crate) fn ticket(&self) -> u64 {
        self.0.stream.set_home();
        self.0.issued.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub(crate) fn issued(&self) -> u64 {
        self.0.issued.load(Ordering::Acquire)
    }

    /// All up to this count is done.
    pub(super) fn set_synced(&self, up_to: u64) {
        self.0.stream.set_synced(up_to);
    }

    /// Whether the host has seen the work with this ticket done.
    #[inline]
    pub(crate) fn has_synced(&self, ticket: u64) -> bool {
        self.0.stream.has_synced(ticket)
    }

    /// Pinned memory for small writes.
    pub(crate) fn staging(&self) -> &Staging {
        self.0.staging.get_or_init(|| Staging::new(&self.0.stream))
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
