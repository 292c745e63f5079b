//! The time between two events.

use core::time::Duration;

use cuda_sys::{CUresult, Call};

use super::event::Event;
use super::recorded::Recorded;
use crate::error::{Error, NoTime, Result, Which};

impl Event {
    /// The time from `start` to this event, about half a microsecond exact. Both have been recorded
    /// and reached.
    ///
    /// Calls `cuEventElapsedTime` (CUDA 2.0).
    ///
    /// # Errors
    /// [`Error::NoTime`](crate::Error::NoTime) says why there is none: one of them keeps no time,
    /// was never recorded, was last recorded in a capture, or is not reached; or this event was
    /// reached before `start`, and how long. One is of another context; or the driver refuses the
    /// call: `INVALID_HANDLE` where other code created an event without timing, or has never
    /// recorded it.
    #[doc(alias = "cuEventElapsedTime")]
    #[doc(alias = "cudaEventElapsedTime")]
    pub fn elapsed_since(&self, start: &Self) -> Result<Duration> {
        let context = self.context();
        context.ensure_usable()?;
        context.ensure_same(start.context(), "the starting event")?;
        for (event, which) in [(start, Which::Start), (self, Which::End)] {
            event.has_time(which)?;
        }
        let mut milliseconds = 0.0;
        // SAFETY: both events are alive and the out pointer is valid.
        let code = unsafe {
            context.driver().cuEventElapsedTime(&raw mut milliseconds, start.as_raw(), self.as_raw())
        };
        if !code.is_success() {
            return Err(self.no_time(start, code));
        }
        let duration = |milliseconds: f32| Duration::try_from_secs_f64(f64::from(milliseconds) / 1000.0);
        duration(milliseconds)
            .map_err(|_| Error::NoTime(NoTime::Backwards(duration(-milliseconds).unwrap_or_default())))
    }

    /// Whether it may have a time: the driver answers the same to an event without timing and to
    /// one never recorded.
    fn has_time(&self, which: Which) -> Result<()> {
        if self.options().is_some_and(|options| !options.timing) {
            return Err(Error::NoTime(NoTime::WithoutTiming(which)));
        }
        match self.recorded()?.place() {
            Recorded::Captured(_) | Recorded::Foreign => Err(Error::NoTime(NoTime::Captured(which))),
            Recorded::Unknown | Recorded::Never | Recorded::Plain => Ok(()),
        }
    }

    #[cold]
    fn no_time(&self, start: &Self, code: CUresult) -> Error {
        // A graph that other code launches records its events without a note: so it counts only
        // with the driver's no.
        let never = |event: &Self| event.recorded().is_ok_and(|record| record.place() == Recorded::Never);
        Error::NoTime(match code {
            CUresult::CUDA_ERROR_NOT_READY => NoTime::NotReached,
            CUresult::CUDA_ERROR_INVALID_HANDLE if never(start) => NoTime::NeverRecorded(Which::Start),
            CUresult::CUDA_ERROR_INVALID_HANDLE if never(self) => NoTime::NeverRecorded(Which::End),
            _ => return self.context().failure(Call::cuEventElapsedTime, code),
        })
    }
}
