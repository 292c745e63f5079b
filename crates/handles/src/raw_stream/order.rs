//! Making other streams wait for the work of a stream, by an event that the stream keeps.

use core::cell::Cell;
use std::sync::atomic::Ordering;

use cuda_sys::{CUevent_flags, CUevent_st, CUstream, Call};

use super::event::create_event;
use super::owner::RawStream;
use super::point::record_new;
use crate::context::Context;
use crate::destroy::{self, Object};
use crate::error::{Error, Result};
use crate::registry::Raw;

impl RawStream {
    /// Makes `waiter` wait for all work enqueued here now. Two calls, besides the marker's
    /// creation. `wait` makes the waiter's call, with the marker and the number of the capture that
    /// it was recorded in, 0 for none. It must not wait: other threads need the gate.
    pub(crate) fn order_before<R>(&self, wait: impl FnOnce(Raw<CUevent_st>, u64) -> Result<R>) -> Result<R> {
        let _gate = self.gate_unless_inside()?;
        let (marker, word) = {
            let _access = self.enqueue()?;
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
        let access = Cell::new(None);
        let waits = || {
            access.set(Some(waiter.enqueue()?));
            waiter.refuse_capture(waiting)
        };
        self.order_if(waits, waiter.context(), waiter.raw(), what)
    }

    /// `context` is the waiter's: a fault in its call is not this stream's. The order is always the
    /// gate, then access.
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
                // The end of its work is unknown.
                _ => Err(Error::Capturing { what }),
            };
        }
        let _access = self.enqueue()?;
        // Before the record, to leave a capture alone; after it, for streams that other code
        // captures: a capture that begins later cannot have caught the record.
        self.refuse_capture(what)?;
        let marker = self.record_marker()?;
        self.refuse_capture(what)?;
        let_wait(context, waiter, marker)
    }

    /// A new event behind all work enqueued here now, for a caller that asks when that is over.
    /// Refused while this stream is capturing. `None` if other code has the stream and no handle is
    /// left: then only the marker is behind its work.
    pub(crate) fn record_end(&self, what: &'static str) -> Result<Option<Raw<CUevent_st>>> {
        let gate = self.gate_unless_inside()?;
        if gate.closed && !self.owned {
            return Ok(None);
        }
        let _access = self.enqueue()?;
        // Twice, as in `order_if`.
        self.refuse_capture(what)?;
        let event = record_new(&self.context, self.raw())?;
        match self.refuse_capture(what) {
            Ok(()) => Ok(Some(event)),
            Err(error) => {
                destroy::destroy(&self.context, Object::Event(event));
                Err(error)
            }
        }
    }

    pub(super) fn record_marker(&self) -> Result<Raw<CUevent_st>> {
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
