//! Events. Each record of one is a marker, which a stream reaches.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::device::context::Context;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, INVALID_HANDLE};
use crate::stream::marker::Marker;
use crate::stream::queue::Stream;
use crate::stream::shared_records::SharedRecords;
use crate::sync::lock;

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
            let known = own.as_ref().map_or(0, |marker| marker.number());
            if newest > known {
                *own = Some(Arc::new(Marker::foreign_record(Arc::clone(records), newest)));
            }
        }
        own.clone()
    }

    /// Starts a new record.
    pub(crate) fn renew(&self) -> Arc<Marker> {
        let mut own = lock(&self.last);
        let record = self.records.as_ref().map(|records| (Arc::clone(records), records.next()));
        let marker = Arc::new(Marker::new(record));
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
