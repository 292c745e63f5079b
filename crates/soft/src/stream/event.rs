//! Events, and the markers that streams reach when an event is recorded.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use crate::device::context::Context;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, INVALID_HANDLE};
use crate::stream::queue::Stream;
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

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) context: Arc<Context>,
    pub(crate) flags: u32,
    /// Its records shared with other processes, if it is an interprocess event.
    pub(crate) records: Option<Arc<SharedRecords>>,
    last: Mutex<Option<Arc<Marker>>>,
}

static EVENTS: Mutex<Slots<Arc<Event>>> = Mutex::new(Slots::new(Kind::Event));

fn events() -> MutexGuard<'static, Slots<Arc<Event>>> {
    lock(&EVENTS)
}

pub(crate) fn create(context: Arc<Context>, flags: u32, records: Option<SharedRecords>) -> u64 {
    let records = records.map(Arc::new);
    events().insert(Arc::new(Event { context, flags, records, last: Mutex::default() }))
}

pub(crate) fn destroy(handle: u64) -> Answer {
    events().remove(handle).map(drop).ok_or(INVALID_HANDLE)
}

pub(crate) fn get(handle: u64) -> Answer<Arc<Event>> {
    events().get(handle).cloned().ok_or(INVALID_HANDLE)
}

pub(crate) fn exists(handle: u64) -> bool {
    events().get(handle).is_some()
}

pub(crate) fn count() -> usize {
    events().len()
}

impl Event {
    /// The latest record.
    pub(crate) fn last(&self) -> Option<Arc<Marker>> {
        let mut own = lock(&self.last);
        if let Some(records) = &self.records {
            let newest = records.last();
            let known =
                own.as_ref().and_then(|marker| marker.record.as_ref()).map_or(0, |(_, number)| *number);
            if newest > known {
                let record = Some((Arc::clone(records), newest));
                *own = Some(Arc::new(Marker { record, is_foreign: true, ..Marker::default() }));
            }
        }
        own.clone()
    }

    /// Starts a new record.
    pub(crate) fn renew(&self) -> Arc<Marker> {
        let mut own = lock(&self.last);
        let record = self.records.as_ref().map(|records| (Arc::clone(records), records.next()));
        let marker = Arc::new(Marker { record, ..Marker::default() });
        *own = Some(Arc::clone(&marker));
        marker
    }

    /// `cuEventRecord`.
    pub(crate) fn record(&self, stream: &Arc<Stream>) {
        let marker = self.renew();
        stream.push_marker(move || marker.reach());
    }

    /// `cuStreamWaitEvent`. An event that was never recorded has no effect.
    pub(crate) fn make_wait(&self, stream: &Arc<Stream>) {
        if let Some(marker) = self.last().filter(|marker| marker.time().is_none()) {
            stream.push_always(move || marker.wait());
        }
    }
}

/// Removes the events of a context that has ended.
pub(crate) fn forget_context(context: &Context) {
    events().retain(|event| event.context.id != context.id);
}
