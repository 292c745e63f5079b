//! Events: points in the work of a stream.

use core::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use cuda_sys::{CUevent, CUevent_flags, CUevent_st, CUresult, Call};
use smallvec::SmallVec;

use super::recorded::{Point, Record, Recorded};
use crate::context::{Busy, Context, capture_mode, unless_inside};
use crate::destroy::{self, Object};
use crate::error::{Error, Result};
use crate::raw_stream;
use crate::registry::{Raw, Registry, Sharded, identity};
use crate::sync::{Rank, SpinGuard, SpinLock, process};

static EVENTS: LazyLock<Registry<Sharded<EventBox>>> = LazyLock::new(|| Registry::with_map(Sharded::new()));

/// The options of an event. The driver cannot be asked for them afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventOptions {
    /// Whether it keeps the time, for [`Event::elapsed_since`]. Events without are faster. Default:
    /// yes, as in CUDA.
    #[doc(alias = "CU_EVENT_DISABLE_TIMING")]
    pub timing: bool,
    /// Whether a thread that waits for it sleeps instead of spinning. Default: no.
    #[doc(alias = "CU_EVENT_BLOCKING_SYNC")]
    pub blocking: bool,
    /// Whether other processes can use it; excludes timing. Default: no.
    #[doc(alias = "CU_EVENT_INTERPROCESS")]
    pub ipc: bool,
}

impl Default for EventOptions {
    fn default() -> Self {
        Self { timing: true, blocking: false, ipc: false }
    }
}

impl EventOptions {
    fn flags(self) -> Result<u32> {
        if self.ipc && self.timing {
            return Err(Error::IpcTiming);
        }
        let flag = |set: bool, flag: CUevent_flags| if set { flag.0 } else { 0 };
        Ok(flag(!self.timing, CUevent_flags::CU_EVENT_DISABLE_TIMING)
            | flag(self.blocking, CUevent_flags::CU_EVENT_BLOCKING_SYNC)
            | flag(self.ipc, CUevent_flags::CU_EVENT_INTERPROCESS))
    }
}

struct EventBox {
    raw: Raw<CUevent_st>,
    context: Context,
    /// `None` for an adopted event: its options are not known.
    options: Option<EventOptions>,
    /// The last record. Held over the driver call that records it or waits for it, so that both
    /// agree.
    recorded: SpinLock<Record>,
    /// Whether other code may record it by its raw handle, so that its last record is unknown.
    lent: AtomicBool,
    /// Whether graphs may record it, at unknown times.
    in_graphs: AtomicBool,
}

/// An event. Record it with [`Stream::record`](crate::Stream::record); it is destroyed with its
/// last handle.
#[derive(Clone)]
pub struct Event(Arc<EventBox>);

identity!(Event);

impl Context {
    /// An event with the default options.
    ///
    /// Calls `cuEventCreate` (CUDA 2.0).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuEventCreate")]
    #[doc(alias = "cudaEventCreate")]
    pub fn event(&self) -> Result<Event> {
        self.event_with(EventOptions::default())
    }

    /// An event with these options.
    ///
    /// Calls `cuEventCreate` (CUDA 2.0).
    ///
    /// # Errors
    /// The options exclude each other, or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuEventCreate")]
    #[doc(alias = "cudaEventCreateWithFlags")]
    pub fn event_with(&self, options: EventOptions) -> Result<Event> {
        let raw = raw_stream::create_event(self, options.flags()?)?;
        let recorded = SpinLock::new(Rank::Event, Record::new(Recorded::Never));
        let event = Arc::new(EventBox {
            raw,
            context: self.clone(),
            options: Some(options),
            recorded,
            lent: AtomicBool::new(false),
            in_graphs: AtomicBool::new(false),
        });
        EVENTS.register(raw.key(), Arc::downgrade(&event));
        Ok(Event(event))
    }
}

/// An event that may be gone.
pub(crate) struct WeakEvent(Weak<EventBox>);

impl WeakEvent {
    pub(crate) fn upgrade(&self) -> Option<Event> {
        self.0.upgrade().map(Event)
    }
}

impl Event {
    /// An event of another process that was opened here.
    pub(crate) fn imported(context: &Context, raw: CUevent) -> Self {
        let options = EventOptions { timing: false, blocking: false, ipc: true };
        let recorded = SpinLock::new(Rank::Event, Record::new(Recorded::Unknown));
        let event = Arc::new(EventBox {
            raw: Raw::new(raw),
            context: context.clone(),
            options: Some(options),
            recorded,
            lent: AtomicBool::new(false),
            in_graphs: AtomicBool::new(false),
        });
        EVENTS.register(raw.addr(), Arc::downgrade(&event));
        Self(event)
    }

    pub(crate) fn downgrade(&self) -> WeakEvent {
        WeakEvent(Arc::downgrade(&self.0))
    }

    /// The event behind a raw handle: its owner, if this library knows one, or else a handle that
    /// does not own the event.
    ///
    /// The last record of an adopted event is never known for certain, even after it was recorded
    /// here: its owner may have recorded it since. A wait for it on a capturing stream goes to the
    /// driver, which invalidates the capture unless the event was recorded in it. If its owner has
    /// recorded it in a capture, [`query`](Self::query),
    /// [`synchronize_blocking`](Self::synchronize_blocking), [`elapsed_since`](Self::elapsed_since)
    /// and a wait of the legacy stream invalidate that capture.
    ///
    /// # Safety
    /// `raw` is an event of `context`, and it lives until every use of the result is over.
    ///
    /// # Errors
    /// The event is known and belongs to another context
    /// ([`WrongContext`](crate::Error::WrongContext)).
    pub unsafe fn from_raw(context: &Context, raw: CUevent) -> Result<Self> {
        process::ensure_not_forked()?;
        if let Some(known) = EVENTS.find(&raw.addr()).map(Self) {
            context.ensure_same(known.context(), "the event")?;
            return Ok(known);
        }
        let recorded = SpinLock::new(Rank::Event, Record::new(Recorded::Unknown));
        Ok(Self(Arc::new(EventBox {
            raw: Raw::new(raw),
            context: context.clone(),
            options: None,
            recorded,
            lent: AtomicBool::new(true),
            in_graphs: AtomicBool::new(false),
        })))
    }

    /// Keeps other threads from recording these events, or waiting for them, while a call of
    /// another crate records them. Taken before read access of a stream.
    ///
    /// # Errors
    /// `NOT_PERMITTED` inside a host function while another thread uses one of them.
    #[doc(hidden)]
    pub fn recording<'e>(events: impl IntoIterator<Item = &'e Self>) -> Result<Recording<'e>> {
        let mut events: SmallVec<[&Self; 4]> = events.into_iter().collect();
        // Each event once, in one order for all threads, so that no thread waits for an event while
        // it holds another one that is waited for.
        events.sort_unstable_by_key(|event| Arc::as_ptr(&event.0).addr());
        events.dedup_by_key(|event| Arc::as_ptr(&event.0).addr());
        events.into_iter().map(Self::recorded).collect::<Result<_>>().map(Recording)
    }

    /// The last record, for reading and changing. The holder may be recording the event, which
    /// takes as long as other calls let the driver wait for everything; inside a host function,
    /// which such a call may be waiting for, it is refused.
    #[inline]
    pub(crate) fn recorded(&self) -> Result<SpinGuard<'_, Record>> {
        unless_inside(&self.0.context, || self.busy(), || self.0.recorded.try_lock())
    }

    #[cold]
    fn busy(&self) -> Busy {
        const BY: &str = "a call that records it, asks it or makes a stream wait for it, or a launch that records it, from which the driver has not returned";
        Busy { what: format!("the event {:?}", self.0.raw).into(), by: BY.into() }
    }

    /// The last record, as far as a wait can rely on what is noted.
    #[inline]
    pub(crate) fn certain(&self, noted: Recorded) -> Recorded {
        if self.0.lent.load(Ordering::Acquire) { Recorded::Unknown } else { noted }
    }

    /// The driver answers such a question by invalidating the capture. While the result is held, no
    /// thread records the event here.
    fn refuse_captured(&self) -> Result<SpinGuard<'_, Record>> {
        let recorded = self.recorded()?;
        match recorded.place() {
            Recorded::Captured(_) | Recorded::Foreign => Err(Error::CapturedEvent),
            Recorded::Unknown | Recorded::Never | Recorded::Plain => Ok(recorded),
        }
    }

    /// The driver's own handle, to let other code record the event: from now on, where it was
    /// recorded last counts as unknown, as for one that came by [`from_raw`](Self::from_raw). For
    /// other calls [`as_raw`](Self::as_raw) will do.
    #[must_use]
    pub fn lend(&self) -> CUevent {
        self.0.lent.store(true, Ordering::Release);
        self.as_raw()
    }

    /// The driver's own handle. Record the event with it only after [`lend`](Self::lend): a stream
    /// that waits for an event of an unknown capture is captured without this library's knowledge,
    /// and the owners of its work are not kept for the graph.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUevent {
        self.0.raw.get()
    }

    /// The context it was created in.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Its options; `None` if other code created it.
    #[must_use]
    pub fn options(&self) -> Option<EventOptions> {
        self.0.options
    }

    /// Whether all work up to its last record is done; true if it was never recorded.
    ///
    /// Calls `cuEventQuery` (CUDA 2.0).
    ///
    /// # Errors
    /// [`Error::CapturedEvent`](crate::Error::CapturedEvent) if it was last recorded in a capture,
    /// or the driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuEventQuery")]
    #[doc(alias = "cudaEventQuery")]
    pub fn query(&self) -> Result<bool> {
        self.0.context.ensure_usable()?;
        // Over the call, so that no thread records it in a capture meanwhile.
        let recorded = self.refuse_captured()?;
        let _mode = capture_mode::relaxed(self.0.context.driver());
        // SAFETY: the event is alive.
        match unsafe { self.0.context.driver().cuEventQuery(self.as_raw()) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => {
                self.0.context.check(Call::cuEventQuery, code)?;
                self.reached(&recorded.point());
                Ok(true)
            }
        }
    }

    /// Waits until all work up to its last record is done; returns immediately if it was never
    /// recorded. Other threads may record it meanwhile, but not in a capture while this begins: the
    /// driver would invalidate the capture.
    ///
    /// Calls `cuEventSynchronize` (CUDA 2.0).
    ///
    /// # Errors
    /// [`Error::CapturedEvent`](crate::Error::CapturedEvent) if it was last recorded in a capture,
    /// or the driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuEventSynchronize")]
    #[doc(alias = "cudaEventSynchronize")]
    pub fn synchronize_blocking(&self) -> Result<()> {
        self.0.context.ensure_usable()?;
        let waited_for = self.refuse_captured()?.point();
        self.0.context.refuse_in_callback()?;
        let mode = capture_mode::relaxed(self.0.context.driver());
        // SAFETY: the event is alive.
        let code = unsafe { self.0.context.driver().cuEventSynchronize(self.as_raw()) };
        drop(mode);
        self.0.context.check(Call::cuEventSynchronize, code)?;
        // If it was recorded again meanwhile, the wait may have been for the later record, on
        // another stream.
        if self.recorded().is_ok_and(|recorded| recorded.point().0 == waited_for.0) {
            self.reached(&waited_for);
        }
        Ok(())
    }

    /// Takes note that the point of a record was reached, if the driver's answer was certainly
    /// about that: other code, other processes and graphs may have recorded the event since.
    fn reached(&self, (_, point): &(u64, Option<Point>)) {
        let is_ours = |options: EventOptions| !options.ipc;
        let EventBox { lent, in_graphs, options, .. } = &*self.0;
        if options.is_some_and(is_ours) && !lent.load(Ordering::Acquire) && !in_graphs.load(Ordering::Acquire)
        {
            point.iter().for_each(Point::reach);
        }
    }

    /// Says that graphs may record it from now on.
    #[doc(hidden)]
    pub fn set_in_graphs(&self) {
        self.0.in_graphs.store(true, Ordering::Release);
    }
}

/// Events that a call is recording; see [`Event::recording`].
#[doc(hidden)]
#[derive(Debug)]
#[must_use]
pub struct Recording<'e>(SmallVec<[SpinGuard<'e, Record>; 4]>);

impl Recording<'_> {
    /// Takes note that the call has recorded them, outside of any capture.
    pub fn done(mut self) {
        self.0.iter_mut().for_each(|recorded| recorded.set(Recorded::Plain));
    }
}

impl Drop for EventBox {
    fn drop(&mut self) {
        if self.options.is_some() {
            EVENTS.forget(self.raw.key(), self);
            destroy::destroy(&self.context, Object::Event(self.raw));
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Event").field("raw", &self.0.raw).field("options", &self.0.options).finish()
    }
}
