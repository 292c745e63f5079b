//! Events and waits, by which streams are drawn into captures.

use cuda_handles::{Event, Stream};

use super::expected::Fault;
use super::model::Past;
use super::ops::Number;
use super::world::World;

/// An event with the place of its last record.
pub(super) struct Recorded {
    event: Event,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Never,
    Plain,
    /// In this capture, behind these nodes.
    Captured(usize, Past),
}

impl Recorded {
    pub(super) fn never(event: Event) -> Self {
        Self { event, place: Place::Never }
    }
}

impl World<'_> {
    fn event(&self, number: Number) -> Option<usize> {
        usize::from(number).checked_rem(self.events.len())
    }

    pub(super) fn drop_event(&mut self, event: Number) {
        if let Some(event) = self.event(event) {
            drop(self.events.swap_remove(event));
        }
    }

    pub(super) fn record(&mut self, stream: Number, event: Number) {
        let (Some(at), stream) = (self.event(event), self.stream(stream)) else { return };
        let (event, capture) = (self.events[at].event.clone(), self.capture_of(&stream));
        let fault = self.fault_of_call(capture);
        if self.call(fault, |_| Ok(stream.record(&event)?)).is_none() {
            return;
        }
        self.events[at].place = match capture {
            None => Place::Plain,
            Some(capture) => Place::Captured(capture, self.past(capture, stream.id())),
        };
    }

    pub(super) fn wait(&mut self, stream: Number, event: Number) {
        let (Some(at), stream) = (self.event(event), self.stream(stream)) else { return };
        let (event, place) = (self.events[at].event.clone(), self.events[at].place.clone());
        let here = self.capture_of(&stream);
        let fault = match (&place, here) {
            // The driver decides whether an invalid capture hears of it.
            (Place::Never, Some(here)) if self.captures[here].model.is_invalid => return,
            (Place::Never, _) | (Place::Plain, None) => None,
            (Place::Plain, Some(_)) => Some(Fault::Isolated),
            (Place::Captured(there, _), here) => self.fault_of_join(*there, here),
        };
        if self.call(fault, |_| Ok(stream.wait(&event)?)).is_some()
            && let Place::Captured(there, past) = place
        {
            self.captures[there].model.join(stream.id(), &past);
        }
    }

    pub(super) fn wait_for(&mut self, stream: Number, other: Number) {
        self.make_wait(&self.stream(stream), &self.stream(other));
    }

    pub(super) fn make_wait(&mut self, stream: &Stream, other: &Stream) {
        let (here, there) = (self.capture_of(stream), self.capture_of(other));
        let is_invalid = |capture: Option<usize>| self.fault_of_call(capture).is_some();
        let fault = match (there, here) {
            _ if stream.id() == other.id() => None,
            _ if is_invalid(here) || is_invalid(there) => Some(Fault::Any),
            (None, None) => None,
            (None, Some(_)) => Some(Fault::Isolated),
            (Some(there), here) => self.fault_of_join(there, here),
        };
        if self.call(fault, |_| Ok(stream.wait_for(other)?)).is_some()
            && let Some(there) = there
        {
            let past = self.past(there, other.id());
            self.captures[there].model.join(stream.id(), &past);
        }
    }

    /// The fault of a wait for an event of the capture `there`, on a stream that is in `here`.
    fn fault_of_join(&self, there: usize, here: Option<usize>) -> Option<Fault> {
        match here {
            Some(here) if here == there => self.fault_of_call(Some(here)),
            _ if !self.captures[there].is_open => Some(Fault::CapturedEvent),
            Some(_) => Some(Fault::Merge),
            None => self.fault_of_call(Some(there)),
        }
    }

    fn past(&self, capture: usize, stream: u64) -> Past {
        self.captures[capture].model.pasts.get(&stream).cloned().unwrap_or_default()
    }

    pub(super) fn ask_event(&mut self, event: Number, wait: bool) {
        let Some(at) = self.event(event) else { return };
        let Recorded { event, place } = &self.events[at];
        let (event, is_captured) = (event.clone(), matches!(place, Place::Captured(..)));
        let fault = is_captured.then_some(Fault::CapturedEvent);
        self.call(fault, |_| {
            if wait {
                event.synchronize_blocking()?;
            } else {
                event.query()?;
            }
            Ok(())
        });
    }
}
