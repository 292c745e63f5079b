//! Nodes that record events, and wait for them.

use cuda_handles::Event;
use cuda_sys::{CUevent, CUgraphNodeParams, CUgraphNodeType};

use crate::build::frontier::Frontier;
use crate::error::Result;
use crate::error::wrong_context::ensure_of_graph;
use crate::graph::Graph;
use crate::graph::node::typed;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;

typed! {
    /// A node that records an [event](Event), so that streams, other graphs and the host can wait
    /// for the point where it stands.
    EventRecordNode, EventRecord
}

typed! {
    /// A node that waits for an [event](Event).
    EventWaitNode, EventWait
}

impl EventRecordNode {
    /// The event.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphEventRecordNodeGetEvent")]
    pub fn event(&self) -> Result<Event> {
        match self.node_params()? {
            NodeParams::EventRecord(event) => Ok(event),
            // The handle is made for rows of its kind only, and a row keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// Records another event from now on. Executables made before go on with the one before.
    ///
    /// Stands on `cuGraphNodeSetParams`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`Frontier::record`]; the node is as it was then.
    #[doc(alias = "cuGraphEventRecordNodeSetEvent")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set_event(&self, event: &Event) -> Result<()> {
        self.getting(ensure_own(self.graph(), event))?;
        self.replace(NodeParams::EventRecord(event.clone()), Owners::new(), &mut record(event))
    }
}

impl EventWaitNode {
    /// The event.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphEventWaitNodeGetEvent")]
    pub fn event(&self) -> Result<Event> {
        match self.node_params()? {
            NodeParams::EventWait(event) => Ok(event),
            _ => Err(self.removed()),
        }
    }

    /// Waits for another event from now on. Executables made before go on with the one before.
    ///
    /// Stands on `cuGraphNodeSetParams`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`Frontier::wait`]; the node is as it was then.
    #[doc(alias = "cuGraphEventWaitNodeSetEvent")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set_event(&self, event: &Event) -> Result<()> {
        self.replace(NodeParams::EventWait(event.clone()), Owners::new(), &mut wait(event.as_raw()))
    }
}

impl Frontier<'_> {
    /// Adds a node that records `event` when all before it is done. Each launch records it anew.
    ///
    /// With events that keep the time, [`Event::elapsed_since`] measures across nodes, once the
    /// launch is done.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// An event of another context; a node of the frontier was removed; or what the driver answers.
    #[doc(alias = "cuGraphAddEventRecordNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn record(&self, event: &Event) -> Result<EventRecordNode> {
        ensure_own(self.graph(), event)?;
        let node_params = NodeParams::EventRecord(event.clone());
        self.add(node_params, Owners::new(), &mut record(event)).map(EventRecordNode::wrap)
    }

    /// Adds a node that waits for `event` as it was recorded last when the graph is launched; at
    /// once if it never was. The event may be of another context.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// A node of the frontier was removed, or what the driver answers.
    #[doc(alias = "cuGraphAddEventWaitNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn wait(&self, event: &Event) -> Result<EventWaitNode> {
        let node_params = NodeParams::EventWait(event.clone());
        self.add(node_params, Owners::new(), &mut wait(event.as_raw())).map(EventWaitNode::wrap)
    }
}

fn ensure_own(graph: &Graph, event: &Event) -> Result<()> {
    ensure_of_graph(graph.context(), event.context(), || "the event to record")
}

/// The driver's form of a node that records an event.
fn record(event: &Event) -> CUgraphNodeParams {
    event.set_in_graphs();
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    let to = &mut params.__bindgen_anon_1;
    to.eventRecord.event = event.as_raw();
    params
}

/// The driver's form of a node that waits for an event.
fn wait(event: CUevent) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    let to = &mut params.__bindgen_anon_1;
    to.eventWait.event = event;
    params
}
