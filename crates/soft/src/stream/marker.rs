//! Markers: positions that streams reach, by which others wait for them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use crate::stream::shared_records::SharedRecords;
use crate::sync::{lock, wait};

/// A position that a stream of this or of another process reaches once.
#[derive(Debug, Default)]
pub(crate) struct Marker {
    reached: Mutex<Option<Instant>>,
    changed: Condvar,
    /// The shared records that it belongs to, and its number there.
    record: Option<(Arc<SharedRecords>, u64)>,
    /// A stream of another process reaches it.
    is_foreign: bool,
}

impl Marker {
    /// A marker of this process; its shared record and number, if it has one.
    pub(super) fn new(record: Option<(Arc<SharedRecords>, u64)>) -> Self {
        Self { record, ..Self::default() }
    }

    /// A shared record that another process has made.
    pub(super) fn foreign_record(records: Arc<SharedRecords>, number: u64) -> Self {
        Self { record: Some((records, number)), is_foreign: true, ..Self::default() }
    }

    /// Its number among the shared records, or 0.
    pub(super) fn number(&self) -> u64 {
        self.record.as_ref().map_or(0, |(_, number)| *number)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        lock(&self.reached)
    }

    /// The shared record, if another process made it.
    fn foreign(&self) -> Option<&(Arc<SharedRecords>, u64)> {
        self.record.as_ref().filter(|_| self.is_foreign)
    }

    pub(crate) fn reach(&self) {
        self.lock().get_or_insert_with(Instant::now);
        self.changed.notify_all();
        if let Some((records, number)) = &self.record {
            records.finish(*number);
        }
    }

    pub(crate) fn time(&self) -> Option<Instant> {
        if self.foreign().is_some_and(|(records, number)| records.is_done(*number)) {
            self.lock().get_or_insert_with(Instant::now);
        }
        *self.lock()
    }

    pub(crate) fn wait(&self) {
        if let Some((records, number)) = self.foreign() {
            return records.wait(*number);
        }
        let mut reached = self.lock();
        while reached.is_none() {
            reached = wait(&self.changed, reached);
        }
    }
}
