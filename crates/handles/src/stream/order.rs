//! Order between streams: recording events, and making streams wait.

use cuda_sys::Call;

use super::event::Event;
use super::handle::Stream;
use super::open_captures;
use super::recorded::Recorded;
use crate::error::{Error, Result};

/// How many other streams a stream remembers waits for.
const REMEMBERED: usize = 32;

const FIRST_USE: &str = "the first use of memory of another stream";
const HANDING: &str = "handing memory to another stream";

impl Stream {
    /// Records `event`: it is reached when the work enqueued so far is done.
    ///
    /// Calls `cuEventRecord` (CUDA 2.0).
    ///
    /// # Errors
    /// The event is of another context ([`WrongContext`](crate::Error::WrongContext)), or the
    /// driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuEventRecord")]
    #[doc(alias = "cudaEventRecord")]
    pub fn record(&self, event: &Event) -> Result<()> {
        self.context().ensure_usable()?;
        self.context().ensure_same(event.context(), "the event")?;
        let mut recorded = event.recorded()?;
        let access = self.0.stream.enqueue()?;
        let place = if access.flags() == 0 { Recorded::Plain } else { self.place_of_record()? };
        if place != Recorded::Plain {
            event.set_in_graphs();
        }
        // Before the call: all work with a ticket up to this was enqueued.
        let issued = self.issued();
        // SAFETY: stream and event are alive.
        let code = unsafe { self.context().driver().cuEventRecord(event.as_raw(), self.as_raw()) };
        open_captures::note_failure(&self.0.stream, self.context().check(Call::cuEventRecord, code))?;
        match place {
            Recorded::Plain => recorded.set_behind(self.0.stream.reached(), issued),
            place => recorded.set(place),
        }
        Ok(())
    }

    /// The place of a record now, on a stream that may be capturing. With read access.
    #[cold]
    fn place_of_record(&self) -> Result<Recorded> {
        Ok(match self.0.stream.capture() {
            0 if self.0.stream.is_foreign() && self.0.stream.ask_capturing()? => Recorded::Foreign,
            0 => Recorded::Plain,
            word => Recorded::Captured(word),
        })
    }

    /// Makes work enqueued from now on wait until the last record of `event` is reached. The event
    /// may be of another context; it may be dropped or recorded again right afterwards. An event
    /// recorded in an open capture draws this stream into the capture, once no thread waits on the
    /// host for this stream.
    ///
    /// Calls `cuStreamWaitEvent` (CUDA 3.2).
    ///
    /// # Errors
    /// The stream is capturing and the event was not recorded in the same capture
    /// ([`Isolated`](crate::Error::Isolated), [`Merge`](crate::Error::Merge)); the event's capture
    /// is over ([`CapturedEvent`](crate::Error::CapturedEvent)); inside a host function, another
    /// thread uses the stream that would be drawn in (`NOT_PERMITTED`); or the driver refuses the
    /// call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuStreamWaitEvent")]
    #[doc(alias = "cudaStreamWaitEvent")]
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
    /// Calls `cuEventRecord` and `cuStreamWaitEvent`, one call each, with an event that `other`
    /// keeps for this.
    ///
    /// # Errors
    /// This stream is in a capture that `other` is not in ([`Isolated`](crate::Error::Isolated));
    /// inside a host function, another thread uses the stream that would be drawn in
    /// (`NOT_PERMITTED`); or the driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cudaStreamWaitEvent")]
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
        let waits = self.0.stream.insist(|| attempt().transpose());
        // The record on `other` may have been refused.
        open_captures::note_failure(&other.0.stream, waits?)?;
        if plain {
            self.remember_wait(other.id(), issued);
        }
        Ok(())
    }

    /// As [`wait_for`](Self::wait_for), but refused while either of the two is capturing, so that
    /// no stream is drawn into a capture.
    ///
    /// # Errors
    /// One of the streams is capturing ([`Capturing`](crate::Error::Capturing)), or the driver
    /// refuses the call ([`Driver`](crate::Error::Driver)).
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
        let waits = home.0.stream.order_both_uncaptured(&self.0.stream, HANDING, FIRST_USE);
        waits.map_err(|error| first_use(error, home))?;
        self.remember_wait(home.id(), issued);
        Ok(())
    }

    fn has_waited(&self, id: u64, ticket: u64) -> bool {
        let waited = self.0.waited.lock();
        waited.iter().any(|&(other, up_to)| other == id && up_to >= ticket)
    }

    fn remember_wait(&self, id: u64, up_to: u64) {
        let mut waited = self.0.waited.lock();
        if let Some(entry) = waited.iter_mut().find(|(other, _)| *other == id) {
            entry.1 = entry.1.max(up_to);
            return;
        }
        if waited.len() == REMEMBERED {
            waited.remove(0);
        }
        waited.push((id, up_to));
    }
}

/// Names the remedy for a first use while the user or the home captures.
#[cold]
fn first_use(error: Error, home: &Stream) -> Error {
    match error {
        Error::Capturing { what } if what == FIRST_USE => Error::CapturedFirstUse,
        Error::Capturing { what } if what == HANDING => Error::CapturingHome { home: home.id() },
        other => other,
    }
}
