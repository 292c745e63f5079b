//! The gate of a stream: its marker is recorded by one thread at a time, until its last handle
//! closes it.

use std::sync::atomic::Ordering;

use super::owner::{Gate, RawStream};
use crate::context::{Busy, unless_inside};
use crate::destroy;
use crate::error::Result;
use crate::sync::{LockGuard, for_at_most, patience};

/// The failed action where the end of an adopted stream's work cannot be marked.
const UNMARKED: &str = "recording the last work of an adopted stream (what it used stays allocated)";

impl RawStream {
    pub(crate) fn gate(&self) -> LockGuard<'_, Gate> {
        self.up_to_date(self.gate.lock())
    }

    /// The gate, with a late note of the last handle.
    pub(super) fn up_to_date<'g>(&self, mut gate: LockGuard<'g, Gate>) -> LockGuard<'g, Gate> {
        if self.lost.load(Ordering::Acquire) {
            *gate = Gate { closed: true, unmarked: true };
        }
        gate
    }

    /// As [`gate`](Self::gate). The holder may be enqueuing, which takes as long as other calls let
    /// the driver wait for everything. Inside a host function, which such a call may be waiting
    /// for, it is refused.
    pub(super) fn gate_unless_inside(&self) -> Result<LockGuard<'_, Gate>> {
        let gate = unless_inside(&self.context, || Busy::called(&self.name()), || self.gate.try_in_order())?;
        Ok(self.up_to_date(gate))
    }

    /// Whether no handle is left; also false while another thread has the gate.
    pub(crate) fn is_closed(&self) -> bool {
        self.gate.try_lock().is_some_and(|gate| self.up_to_date(gate).closed)
    }

    /// Whether the end of its work is unknown for good; false while another thread has the gate.
    pub(crate) fn is_unmarked(&self) -> bool {
        self.gate.try_lock().is_some_and(|gate| self.up_to_date(gate).unmarked)
    }

    /// Says that no handle is left. A stream that is not ours may be destroyed from now on: its
    /// last point is recorded first.
    pub(crate) fn close(&self) {
        self.close_with(self.gate());
    }

    /// As [`close`](Self::close), or false if another thread has the gate of an owned stream: it
    /// may be in the driver, held up by a call that waits for the host function in which the handle
    /// is dropped. An adopted stream is not dropped there, and may be gone soon.
    pub(crate) fn try_close(&self) -> bool {
        let gate = match self.gate.try_lock() {
            Some(gate) => gate,
            None if self.owned => return false,
            None => match for_at_most(patience(), || self.gate.try_lock()) {
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

    fn close_with(&self, mut gate: LockGuard<'_, Gate>) {
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

    /// Closes an adopted stream whose last work could not be marked.
    fn close_unmarked(&self) {
        self.lost.store(true, Ordering::Release);
        destroy::report(UNMARKED, Busy::called(&self.name()).into());
    }

    fn mark_last(&self) -> Result<()> {
        self.refuse_capture("the last work of a stream")?;
        self.record_marker().or_else(|_first| self.record_marker()).map(drop)
    }
}
