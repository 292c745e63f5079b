//! Whether the work of a stream is done, and waiting until it is.

use core::time::Duration;
use std::sync::atomic::Ordering;

use cuda_sys::{CUresult, Call};

use super::owner::RawStream;
use super::point;
use crate::context::capture_mode;
use crate::destroy::{self, Object};
use crate::error::{Error, Result};
use crate::sync::for_at_most;

/// How long a caller that asks for the free memory waits for a free.
const FREES_LIMIT: Duration = Duration::from_millis(200);

/// How long a marker may stay in a stream that is otherwise idle.
const PASSING: Duration = Duration::from_millis(5);

impl RawStream {
    /// As [`is_idle`](Self::is_idle). If this library has recorded its marker here meanwhile, which
    /// a caller that has just waited for the stream cannot know, waits a moment until the marker is
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

    /// If the stream [is idle soon](Self::is_idle_soon), lets the driver process its frees. Not by
    /// a wait for the stream: other threads may enqueue meanwhile.
    pub(crate) fn settle_soon(&self) {
        const WHAT: &str = "asking whether memory is free";
        if !self.is_idle_within(FREES_LIMIT) || self.is_closed() {
            return;
        }
        let event = point::new(&self.context, |event| {
            let _access = self.enqueue()?;
            self.refuse_capture(WHAT)?;
            point::record(&self.context, event, self.raw())
        });
        let Ok(event) = event else { return };
        let is_reached = || point::is_reached(&self.context, event, WHAT).then_some(());
        if for_at_most(FREES_LIMIT, is_reached).is_some() {
            point::settle(&self.context, event);
        }
        destroy::destroy(&self.context, Object::Event(event));
    }

    /// Whether enqueued work may not be done. Unknown, and false, for an adopted stream that is
    /// gone.
    pub(crate) fn has_work(&self) -> bool {
        let is_gone = !self.owned && self.marker.get().is_none() && self.is_closed();
        !is_gone && !self.is_idle_soon()
    }

    /// Whether all work enqueued here is done. False where that cannot be asked: while capturing,
    /// in a host function. True for an adopted stream that is gone and whose end nothing waits for.
    pub(crate) fn is_idle(&self) -> bool {
        let Ok(gate) = self.gate_unless_inside() else { return false };
        let driver = self.context.driver();
        let code = if gate.closed && !self.owned {
            if gate.unmarked {
                return false;
            }
            // Nothing of this library was used there, so its end was of no interest.
            let Some(marker) = self.marker.get() else { return true };
            let _mode = capture_mode::relaxed(driver);
            // SAFETY: the event is ours; it was recorded behind the stream's last work.
            unsafe { driver.cuEventQuery(marker.get()) }
        } else {
            let Ok(_access) = self.enqueue() else { return false };
            let Some(_asking) = self.launch_gate().ask() else { return false };
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
            // Only to note a lost context.
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
        // A failure is an earlier call's; the check notes a lost context.
        let _ = self.context.check(Call::cuStreamSynchronize, code);
        true
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
            let _access = self.enqueue()?;
            self.refuse_capture("waiting for what used host memory")?;
            point::record(&self.context, event, self.raw())
        })?;
        drop(gate);
        let waited = point::wait(&self.context, event);
        destroy::destroy(&self.context, Object::Event(event));
        waited
    }
}
