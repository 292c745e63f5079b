//! The events that each launch of an executable records.

use cuda_handles::Event;

use crate::state::NodeRecord;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;

/// The events that each launch of an executable records, with their nodes.
#[derive(Debug, Default)]
pub(crate) struct RecordedEvents {
    nodes: Vec<NodeId>,
    events: Vec<Event>,
}

impl RecordedEvents {
    /// The events of a graph's nodes.
    pub(crate) fn of(guard: &GraphGuard<'_>) -> Self {
        Self::among(guard, guard.records().map(|(id, _)| id))
    }

    /// The events of some nodes.
    pub(crate) fn among(guard: &GraphGuard<'_>, nodes: impl Iterator<Item = NodeId>) -> Self {
        let recorded = nodes.filter_map(|id| Some((id, recorded_event(guard.record(id)?)?)));
        let (nodes, events) = recorded.unzip();
        Self { nodes, events }
    }

    /// All events.
    #[inline]
    pub(crate) fn all(&self) -> &[Event] {
        &self.events
    }

    /// Replaces the events that nodes in a child graph node record, by those that it records now.
    /// Returns the ones before.
    pub(crate) fn replace(&mut self, child: NodeId, inside: &[NodeId], events: Vec<Event>) -> Vec<Event> {
        let all = core::mem::take(&mut self.nodes).into_iter().zip(core::mem::take(&mut self.events));
        let (before, kept): (Vec<_>, Vec<_>) =
            all.partition(|(node, _)| *node == child || inside.contains(node));
        (self.nodes, self.events) =
            kept.into_iter().chain(events.into_iter().map(|event| (child, event))).unzip();
        before.into_iter().map(|(_, event)| event).collect()
    }

    /// Sets the event that a node records. Returns the one before.
    pub(crate) fn set(&mut self, node: NodeId, event: Event) -> Option<Event> {
        let place = self.nodes.iter().position(|known| *known == node)?;
        self.events.get_mut(place).map(|known| core::mem::replace(known, event))
    }
}

/// The event that a node records, if it does.
pub(crate) fn recorded_event(record: &NodeRecord) -> Option<Event> {
    match &record.node_params {
        NodeParams::EventRecord(event) => Some(event.clone()),
        NodeParams::Empty
        | NodeParams::Kernel { .. }
        | NodeParams::Memcpy(_)
        | NodeParams::Memset(_)
        | NodeParams::Host(_)
        | NodeParams::EventWait(_)
        | NodeParams::Batch(_)
        | NodeParams::Alloc { .. }
        | NodeParams::Free { .. }
        | NodeParams::SignalSemaphores(_)
        | NodeParams::WaitSemaphores(_)
        | NodeParams::Child { .. }
        | NodeParams::Conditional(_)
        | NodeParams::Other { .. } => None,
    }
}
