//! A driver stream, for as long as a handle or the reaper needs it.

use core::cell::Cell;
use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_sys::{CUevent_flags, CUevent_st, CUresult, CUstream, CUstream_st, CUstreamCaptureStatus, Call};

use super::event::create_event;
use super::point;
use super::wanted::Exclusion;
use crate::access::{CAPTURED, FOREIGN, Shared, Turns, holders, own_block};
use crate::context::{Busy, Context, capture_mode, is_sticky, unless_inside};
use crate::destroy::{self, Object};
use crate::error::{Error, Result};
use crate::registry::Raw;
use crate::sync::{for_at_most, patience, try_lock};

/// The driver's stream behind a handle. It outlives the handle while the reaper has yet to wait for
/// its work.
#[derive(Debug)]
pub(crate) struct RawStream {
    raw: Raw<CUstream_st>,
    id: u64,
    owned: bool,
    context: Context,
    /// Recorded to let other streams wait for this one; made when first needed.
    marker: OnceLock<Raw<CUevent_st>>,
    /// Held from recording the marker to waiting for it, so that nobody records it anew in between.
    gate: Mutex<Gate>,
    /// Whether memory whose home is elsewhere was used here, so that fences have to include it.
    in_fence: AtomicBool,
    /// The capture that the stream is in, 0 for none. Written with `turn` held exclusively.
    capture: AtomicU64,
    /// Shared by those who enqueue, from reading `capture` to the driver's answer; alone for what
    /// lets the stream enter or leave a capture. So what is captured is always known to be. Of its
    /// signs one says that `capture` is not 0, and the other one that somebody else may let the
    /// stream enter a capture, so that the driver has to be asked.
    turn: Turns,
    /// Who wants it alone, and what else he needs alone then.
    exclusion: Exclusion,
    /// Whether memory was allocated here, whose free may have to wait for this stream.
    is_home: AtomicBool,
    /// Whether the marker was recorded since [`is_idle_soon`](Self::is_idle_soon) last asked.
    marked: AtomicBool,
    /// Whether somebody else may capture the stream at any time, for ever.
    lent: AtomicBool,
    /// The highest number up to which the host has seen everything done.
    synced: AtomicU64,
    /// The highest number up to which everything was seen done by way of events; the driver has yet
    /// to look after frees.
    reached: Arc<AtomicU64>,
    /// No handle is left of a stream that is not ours, and the gate could not be had to note that.
    lost: AtomicBool,
}

/// How long somebody waits for a free who asks how much memory is free.
const SEEING: Duration = Duration::from_millis(200);

/// How long a marker may be in a stream that is idle otherwise.
const PASSING: Duration = Duration::from_millis(5);

/// What failed where the end of an adopted stream's work cannot be told.
const UNMARKED: &str = "recording the last work of an adopted stream (what it used stays allocated)";

#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// No handle is left. The marker of a stream that is not ours was recorded then, and the stream
    /// may be gone.
    pub(crate) closed: bool,
    /// That marker could not be recorded: whatever waits for this stream waits for ever.
    unmarked: bool,
}

impl RawStream {
    /// A stream of this library's.
    pub(crate) fn created(context: &Context, raw: CUstream, blocking_with_legacy: bool) -> Self {
        Self::wrap(context, raw, true, blocking_with_legacy)
    }

    /// Somebody else's, who may capture it, and of which nobody knows whether it and the legacy
    /// stream wait for each other.
    pub(crate) fn adopted(context: &Context, raw: CUstream) -> Self {
        let stream = Self::wrap(context, raw, false, true);
        stream.set_foreign();
        stream
    }

    fn wrap(context: &Context, raw: CUstream, owned: bool, meets_legacy: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            raw: Raw::new(raw),
            id,
            owned,
            context: context.clone(),
            marker: OnceLock::new(),
            gate: Mutex::new(Gate::default()),
            in_fence: AtomicBool::new(false),
            capture: AtomicU64::new(0),
            turn: Turns::new(id),
            exclusion: Exclusion::new(meets_legacy),
            is_home: AtomicBool::new(false),
            marked: AtomicBool::new(false),
            lent: AtomicBool::new(false),
            synced: AtomicU64::new(0),
            reached: Arc::default(),
            lost: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn raw(&self) -> CUstream {
        self.raw.get()
    }

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Its name in errors.
    #[cold]
    pub(crate) fn name(&self) -> String {
        format!("the stream {:?} (number {})", self.raw, self.id)
    }

    pub(crate) fn is_owned(&self) -> bool {
        self.owned
    }

    #[inline]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    #[inline]
    pub(crate) fn is_in_fence(&self) -> bool {
        self.in_fence.load(Ordering::Acquire)
    }

    /// Only under the lock of the fence's members.
    pub(crate) fn set_in_fence(&self) {
        self.in_fence.store(true, Ordering::Release);
    }

    /// Says that memory is allocated here.
    #[inline]
    pub(crate) fn set_home(&self) {
        if !self.owned {
            self.is_home.store(true, Ordering::Release);
        }
    }

    pub(crate) fn gate(&self) -> MutexGuard<'_, Gate> {
        self.up_to_date(self.gate.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The gate with what could not be noted there.
    fn up_to_date<'g>(&self, mut gate: MutexGuard<'g, Gate>) -> MutexGuard<'g, Gate> {
        if self.lost.load(Ordering::Acquire) {
            *gate = Gate { closed: true, unmarked: true };
        }
        gate
    }

    /// As [`gate`](Self::gate). Who has it may be enqueuing, which takes as long as other calls let
    /// the driver wait for everything: inside a host function, which such a call may be waiting
    /// for, it is refused then.
    fn gate_unless_inside(&self) -> Result<MutexGuard<'_, Gate>> {
        let gate = unless_inside(&self.context, || Busy::called(&self.name()), || try_lock(&self.gate))?;
        Ok(self.up_to_date(gate))
    }

    /// Whether no handle is left; false as well while somebody has the gate.
    pub(crate) fn is_closed(&self) -> bool {
        try_lock(&self.gate).is_some_and(|gate| self.up_to_date(gate).closed)
    }

    /// The number of the capture begun by this library that the stream is in; 0 for none.
    #[inline]
    pub(crate) fn capture(&self) -> u64 {
        self.capture.load(Ordering::Acquire)
    }

    /// While this is held the stream enters and leaves no capture of this library. Not twice on one
    /// thread.
    ///
    /// # Errors
    /// This is a host function, and the stream is entering or leaving a capture (`NOT_PERMITTED`):
    /// the driver call for that may be waiting for the function.
    #[inline]
    pub(crate) fn enqueue(&self) -> Result<Shared<'_>> {
        match self.turn.share(own_block()) {
            Some(turn) => Ok(turn),
            None => self.enqueue_later(),
        }
    }

    #[cold]
    fn enqueue_later(&self) -> Result<Shared<'_>> {
        let busy = || holders::changing(self.name());
        unless_inside(&self.context, busy, || self.turn.share_again(own_block()))
    }

    pub(crate) fn turn(&self) -> &Turns {
        &self.turn
    }

    pub(crate) fn exclusion(&self) -> &Exclusion {
        &self.exclusion
    }

    /// With the stream [alone](super::exclusion).
    pub(crate) fn set_capture(&self, word: u64) {
        self.capture.store(word, Ordering::Release);
        match word {
            0 => self.turn.clear(CAPTURED),
            _ => self.turn.set(CAPTURED),
        }
    }

    /// From now on the driver is asked: somebody else's capture may reach this stream.
    pub(crate) fn set_foreign(&self) {
        // First: who trusts the stream again meanwhile sees it.
        self.lent.store(true, Ordering::Release);
        self.turn.set(FOREIGN);
    }

    /// The driver is asked until the stream is [trusted](Self::trust) again. With the stream
    /// [alone](super::exclusion).
    pub(crate) fn suspect(&self) {
        self.turn.set(FOREIGN);
    }

    /// Takes back [`suspect`](Self::suspect), still with the stream alone.
    pub(crate) fn trust(&self) {
        self.turn.clear(FOREIGN);
        if self.lent.load(Ordering::Acquire) {
            self.turn.set(FOREIGN);
        }
    }

    /// Notes that the host has seen all up to this count done.
    pub(crate) fn set_synced(&self, up_to: u64) {
        self.synced.fetch_max(up_to, Ordering::AcqRel);
    }

    /// Whether the host has seen what has this ticket done.
    #[inline]
    pub(crate) fn has_synced(&self, ticket: u64) -> bool {
        self.synced.load(Ordering::Acquire) >= ticket
    }

    /// For events that are recorded here.
    #[inline]
    pub(crate) fn reached(&self) -> &Arc<AtomicU64> {
        &self.reached
    }

    /// Whether what has this ticket was seen done, whichever way.
    pub(crate) fn has_done(&self, ticket: u64) -> bool {
        self.has_synced(ticket) || self.reached.load(Ordering::Acquire) >= ticket
    }

    /// Waits for all that is enqueued here now.
    pub(crate) fn wait_for_all(&self) -> Result<()> {
        self.context.refuse_in_callback()?;
        let gate = self.gate_unless_inside()?;
        if gate.closed && !self.owned {
            let refusal = Error::Capturing { what: "the last work of a stream" };
            let &marker = self.marker.get().filter(|_| !gate.unmarked).ok_or(refusal)?;
            drop(gate);
            return point::wait(&self.context, marker);
        }
        let event = point::new(&self.context, |event| {
            let _turn = self.enqueue()?;
            self.refuse_capture("waiting for what used host memory")?;
            point::record(&self.context, event, self.raw())
        })?;
        drop(gate);
        let waited = point::wait(&self.context, event);
        destroy::destroy(&self.context, Object::Event(event));
        waited
    }

    /// Whether somebody else may have let the stream enter a capture.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.turn.signs() & FOREIGN != 0
    }

    fn capture_status(&self) -> (CUresult, bool) {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is alive and the out pointer valid.
        let code = unsafe { self.context.driver().cuStreamIsCapturing(self.raw(), &raw mut status) };
        (code, status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Whether the stream is capturing now. No driver call for a stream that only this library can
    /// capture.
    pub(crate) fn is_capturing(&self) -> Result<bool> {
        if self.capture() != 0 || !self.is_foreign() {
            return Ok(self.capture() != 0);
        }
        let (code, capturing) = self.capture_status();
        self.context.check(Call::cuStreamIsCapturing, code).map(|()| capturing)
    }

    /// Whether the stream is capturing by the driver's word, which costs a call.
    pub(crate) fn ask_capturing(&self) -> Result<bool> {
        let (code, capturing) = self.capture_status();
        self.context.check(Call::cuStreamIsCapturing, code).map(|()| capturing)
    }

    /// An error if the stream is capturing: `what` cannot be captured. The fault that lost the
    /// context is left for the call that follows to report: that call is the one that was asked
    /// for.
    #[inline]
    pub(crate) fn refuse_capture(&self, what: &'static str) -> Result<()> {
        if self.turn.signs() == 0 { Ok(()) } else { self.refuse_signed(what) }
    }

    #[cold]
    fn refuse_signed(&self, what: &'static str) -> Result<()> {
        if self.capture() != 0 {
            return Err(Error::Capturing { what });
        }
        match self.capture_status() {
            (CUresult::CUDA_SUCCESS, true) => Err(Error::Capturing { what }),
            (code, _) if is_sticky(code) => Ok(()),
            (code, _) => self.context.check(Call::cuStreamIsCapturing, code),
        }
    }

    /// As [`is_idle`](Self::is_idle). If this library has recorded its marker here meanwhile, which
    /// somebody who has just waited for the stream cannot know, the marker is given a moment to be
    /// reached.
    pub(crate) fn is_idle_soon(&self) -> bool {
        self.is_idle_within(PASSING)
    }

    fn is_idle_within(&self, bound: Duration) -> bool {
        if self.is_idle() {
            return true;
        }
        if !self.marked.swap(false, Ordering::AcqRel) {
            return false;
        }
        let end = std::time::Instant::now() + bound;
        while std::time::Instant::now() < end {
            std::thread::yield_now();
            if self.is_idle() {
                return true;
            }
        }
        false
    }

    /// Says that this library has just enqueued something that takes no time.
    pub(crate) fn set_marked(&self) {
        self.marked.store(true, Ordering::Release);
    }

    /// If the stream [is idle soon](Self::is_idle_soon), lets the driver look after its frees.
    /// Others may enqueue meanwhile: so not by a wait for the stream.
    pub(crate) fn settle_soon(&self) {
        const WHAT: &str = "asking whether memory is free";
        if !self.is_idle_within(SEEING) || self.is_closed() {
            return;
        }
        let event = point::new(&self.context, |event| {
            let _turn = self.enqueue()?;
            self.refuse_capture(WHAT)?;
            point::record(&self.context, event, self.raw())
        });
        let Ok(event) = event else { return };
        let is_reached = || point::is_reached(&self.context, event, WHAT).then_some(());
        if for_at_most(SEEING, is_reached).is_some() {
            point::settle(&self.context, event);
        }
        destroy::destroy(&self.context, Object::Event(event));
    }

    /// Whether work that was enqueued here is perhaps not done. Nobody knows of that of a stream
    /// that was not ours and is gone.
    pub(crate) fn has_work(&self) -> bool {
        let is_gone = !self.owned && self.marker.get().is_none() && self.is_closed();
        !is_gone && !self.is_idle_soon()
    }

    /// Whether all work enqueued here is done. False where that cannot be asked: while capturing,
    /// in a host function.
    pub(crate) fn is_idle(&self) -> bool {
        let Ok(gate) = self.gate_unless_inside() else { return false };
        let driver = self.context.driver();
        let code = if gate.closed && !self.owned {
            let Some(marker) = self.marker.get().filter(|_| !gate.unmarked) else { return false };
            let _mode = capture_mode::relaxed(driver);
            // SAFETY: the event is ours; it was recorded behind the stream's last work.
            unsafe { driver.cuEventQuery(marker.get()) }
        } else {
            let Ok(_turn) = self.enqueue() else { return false };
            if self.is_capturing().unwrap_or(true) {
                return false;
            }
            let _mode = capture_mode::relaxed(driver);
            // SAFETY: the stream is alive: it is ours, or a handle of it is.
            unsafe { driver.cuStreamQuery(self.raw()) }
        };
        drop(gate);
        match code {
            CUresult::CUDA_SUCCESS => true,
            CUresult::CUDA_ERROR_NOT_READY => false,
            // Only to take note of a lost context.
            code => self.context.check(Call::cuStreamQuery, code).is_ok(),
        }
    }

    /// Whether a stream without handles is idle and the driver has looked after its frees: it is
    /// waited for once it is idle, see [`settle`](point::settle).
    pub(crate) fn is_over(&self) -> bool {
        if !self.is_idle() {
            return false;
        }
        if !self.owned {
            if let Some(&marker) = self.marker.get() {
                point::settle(&self.context, marker);
            }
            return true;
        }
        let driver = self.context.driver();
        let _mode = capture_mode::relaxed(driver);
        // SAFETY: the stream is ours.
        let code = unsafe { driver.cuStreamSynchronize(self.raw()) };
        // A failure is that of an earlier call, and a lost context is taken note of.
        let _ = self.context.check(Call::cuStreamSynchronize, code);
        true
    }

    /// Makes `waiter` wait for all that is enqueued here now. Two calls, the marker's creation
    /// aside. `wait` makes the waiter's call: it is given the marker and the capture that it was
    /// recorded in, 0 for none. It waits for nobody: others need the gate.
    pub(crate) fn order_before<R>(&self, wait: impl FnOnce(Raw<CUevent_st>, u64) -> Result<R>) -> Result<R> {
        let _gate = self.gate_unless_inside()?;
        let (marker, word) = {
            let _turn = self.enqueue()?;
            (self.record_marker()?, self.capture())
        };
        wait(marker, word)
    }

    /// As [`order_before`](Self::order_before), but refuses while this stream is capturing: the
    /// wait would draw `waiter` into the capture.
    pub(crate) fn order_before_uncaptured(
        &self,
        context: &Context,
        waiter: CUstream,
        what: &'static str,
    ) -> Result<()> {
        self.order_if(|| Ok(()), context, waiter, what)
    }

    /// As [`order_before_uncaptured`](Self::order_before_uncaptured) for a waiter that can capture,
    /// which is refused too.
    pub(crate) fn order_both_uncaptured(
        &self,
        waiter: &Self,
        what: &'static str,
        waiting: &'static str,
    ) -> Result<()> {
        let turn = Cell::new(None);
        let waits = || {
            turn.set(Some(waiter.enqueue()?));
            waiter.refuse_capture(waiting)
        };
        self.order_if(waits, waiter.context(), waiter.raw(), what)
    }

    /// `context` is the waiter's: a fault that its call meets is not this stream's. Always in this
    /// order: the gate, then turns.
    fn order_if(
        &self,
        may_wait: impl FnOnce() -> Result<()>,
        context: &Context,
        waiter: CUstream,
        what: &'static str,
    ) -> Result<()> {
        let gate = self.gate_unless_inside()?;
        may_wait()?;
        if gate.closed && !self.owned {
            return match self.marker.get() {
                Some(&marker) if !gate.unmarked => let_wait(context, waiter, marker),
                // Nobody can say any more when its work is done.
                _ => Err(Error::Capturing { what }),
            };
        }
        let _turn = self.enqueue()?;
        // Before the record, to leave a capture alone; and, where others capture, after it, as one
        // that begins later cannot have caught it.
        self.refuse_capture(what)?;
        let marker = self.record_marker()?;
        self.refuse_capture(what)?;
        let_wait(context, waiter, marker)
    }

    /// Says that no handle is left. A stream that is not ours may be destroyed from now on: its
    /// last point is recorded first.
    pub(crate) fn close(&self) {
        self.close_with(self.gate());
    }

    /// As [`close`](Self::close), or false if somebody has the gate of a stream of ours: he may be
    /// in the driver, held up by a call that waits for the host function in which the handle is
    /// dropped. One that is not ours is not dropped there, and may be gone soon.
    pub(crate) fn try_close(&self) -> bool {
        let gate = match try_lock(&self.gate) {
            Some(gate) => gate,
            None if self.owned => return false,
            None => match for_at_most(patience(), || try_lock(&self.gate)) {
                Some(gate) => gate,
                None => {
                    self.close_unmarked();
                    return true;
                }
            },
        };
        self.close_with(gate);
        true
    }

    fn close_with(&self, mut gate: MutexGuard<'_, Gate>) {
        let concerned = self.is_in_fence() || self.is_home.load(Ordering::Acquire);
        let failed = (!self.owned && concerned && destroy::may_call(&self.context))
            .then(|| self.mark_last())
            .and_then(Result::err);
        gate.unmarked = failed.is_some();
        gate.closed = true;
        // The hook may do anything.
        drop(gate);
        if let Some(error) = failed {
            destroy::report(UNMARKED, error);
        }
    }

    /// The end of a stream that is not ours and of which nobody can say any more when its work is
    /// done.
    fn close_unmarked(&self) {
        self.lost.store(true, Ordering::Release);
        destroy::report(UNMARKED, Busy::called(&self.name()).into());
    }

    fn mark_last(&self) -> Result<()> {
        self.refuse_capture("the last work of a stream")?;
        self.record_marker().or_else(|_first| self.record_marker()).map(drop)
    }

    fn record_marker(&self) -> Result<Raw<CUevent_st>> {
        let marker = self.marker()?;
        // SAFETY: event and stream are alive.
        let code = unsafe { self.context.driver().cuEventRecord(marker.get(), self.raw()) };
        self.context.check(Call::cuEventRecord, code)?;
        self.marked.store(true, Ordering::Release);
        Ok(marker)
    }

    /// Makes this stream wait for a marker, of whatever stream.
    pub(crate) fn wait_marker(&self, marker: Raw<CUevent_st>) -> Result<()> {
        let_wait(&self.context, self.raw(), marker)
    }

    /// Only under the gate, so that it is made once.
    fn marker(&self) -> Result<Raw<CUevent_st>> {
        if let Some(&marker) = self.marker.get() {
            return Ok(marker);
        }
        let made = create_event(&self.context, CUevent_flags::CU_EVENT_DISABLE_TIMING.0)?;
        Ok(*self.marker.get_or_init(|| made))
    }
}

/// Makes a stream of `context` wait for an event.
pub(crate) fn let_wait(context: &Context, waiter: CUstream, marker: Raw<CUevent_st>) -> Result<()> {
    // SAFETY: the caller's stream is alive, and so is the event.
    let code = unsafe { context.driver().cuStreamWaitEvent(waiter, marker.get(), 0) };
    context.check(Call::cuStreamWaitEvent, code)
}

impl Drop for RawStream {
    fn drop(&mut self) {
        if let Some(&marker) = self.marker.get() {
            destroy::destroy(&self.context, Object::Event(marker));
        }
        if self.owned {
            destroy::destroy(&self.context, Object::Stream(self.raw));
        }
    }
}
