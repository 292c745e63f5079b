//! The place of the last record of an event.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The place of the last record of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// Unknown: other code may record the event.
    Unknown,
    /// Nowhere.
    Never,
    /// In the work of a stream.
    Plain,
    /// In the capture of this number.
    Captured(u64),
    /// In a capture of other code.
    Foreign,
}

/// The last record of an event.
#[derive(Debug)]
pub(crate) struct Record {
    place: Recorded,
    /// How often it was recorded, so that a later record is not taken for the one that was waited
    /// for.
    count: u64,
    point: Option<Point>,
}

/// A point in the work of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// The ticket up to which the work of the stream was seen done; one counter for each stream.
    reached: Arc<AtomicU64>,
    /// The last ticket before the point.
    ticket: u64,
}

impl Point {
    /// Notes that the point was seen to be reached.
    pub(crate) fn reach(&self) {
        self.reached.fetch_max(self.ticket, Ordering::AcqRel);
    }
}

impl Record {
    pub(crate) const fn new(place: Recorded) -> Self {
        Self { place, count: 0, point: None }
    }

    pub(crate) fn place(&self) -> Recorded {
        self.place
    }

    /// Notes a record at an unknown point.
    pub(crate) fn set(&mut self, place: Recorded) {
        self.count += 1;
        self.place = place;
        self.point = None;
    }

    /// Notes a record in the work of a stream, behind the point with this ticket.
    #[inline]
    pub(crate) fn set_behind(&mut self, reached: &Arc<AtomicU64>, ticket: u64) {
        self.count += 1;
        self.place = Recorded::Plain;
        match &mut self.point {
            // Mostly on one stream: no count of references.
            Some(point) if Arc::ptr_eq(&point.reached, reached) => point.ticket = ticket,
            point => *point = Some(Point { reached: Arc::clone(reached), ticket }),
        }
    }

    /// Which record this is, and its point if that is known.
    pub(crate) fn point(&self) -> (u64, Option<Point>) {
        (self.count, self.point.clone())
    }
}
