//! Events of nodes: events themselves, and graph parameters.

use cuda_handles::{Event, Placeholder};

use crate::param::graph_param::GraphParam;

/// An event for a node: `&Event`, or a parameter, `&GraphParam<Event>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no event for a node",
    label = "not an event",
    note = "there are `&Event` and `&GraphParam<Event>`"
)]
pub trait NodeEvent<'e> {
    /// The event, or the one that the parameter was made with.
    #[doc(hidden)]
    fn event(self) -> &'e Event;

    /// The parameter.
    #[doc(hidden)]
    #[inline]
    fn placeholder(&self) -> Option<Placeholder> {
        None
    }
}

impl<'e> NodeEvent<'e> for &'e Event {
    #[inline]
    fn event(self) -> &'e Event {
        self
    }
}

impl<'e> NodeEvent<'e> for &'e GraphParam<Event> {
    fn event(self) -> &'e Event {
        &self.initial
    }

    fn placeholder(&self) -> Option<Placeholder> {
        Some(self.placeholder)
    }
}
