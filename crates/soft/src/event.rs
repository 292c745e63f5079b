//! Events, and the markers that streams reach.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::code::{Answer, INVALID_HANDLE};
use crate::context::Context;
use crate::handle::{Kind, Slots};
use crate::stream::Stream;

/// A point that some stream will reach once.
#[derive(Debug, Default)]
pub(crate) struct Marker {
    reached: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Marker {
    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn reach(&self) {
        self.lock().get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    pub(crate) fn time(&self) -> Option<Instant> {
        *self.lock()
    }

    pub(crate) fn wait(&self) {
        let mut reached = self.lock();
        while reached.is_none() {
            reached = self.changed.wait(reached).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) context: Arc<Context>,
    pub(crate) flags: u32,
    last: Mutex<Option<Arc<Marker>>>,
}

static EVENTS: Mutex<Slots<Arc<Event>>> = Mutex::new(Slots::new(Kind::Event));

fn events() -> MutexGuard<'static, Slots<Arc<Event>>> {
    EVENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn create(context: Arc<Context>, flags: u32) -> u64 {
    events().insert(Arc::new(Event { context, flags, last: Mutex::default() }))
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
    /// The record that counts now.
    pub(crate) fn last(&self) -> Option<Arc<Marker>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A new record takes the place of the last one.
    pub(crate) fn renew(&self) -> Arc<Marker> {
        let marker = Arc::new(Marker::default());
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&marker));
        marker
    }

    /// `cuEventRecord`.
    pub(crate) fn record(&self, stream: &Arc<Stream>) {
        let marker = self.renew();
        stream.push_always(move || marker.reach());
    }

    /// `cuStreamWaitEvent`; nothing for an event that was never recorded.
    pub(crate) fn make_wait(&self, stream: &Arc<Stream>) {
        if let Some(marker) = self.last().filter(|marker| marker.time().is_none()) {
            stream.push_always(move || marker.wait());
        }
    }
}

/// Forgets the events of a context that has ended.
pub(crate) fn forget_context(context: &Context) {
    events().retain(|event| event.context.id != context.id);
}
