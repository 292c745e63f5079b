//! Event nodes: record events and wait for them.

use cuda_handles::{Event, Placeholder};
use cuda_sys::{CUevent, CUgraphNodeParams, CUgraphNodeType};

use crate::build::frontier::Frontier;
use crate::error::Result;
use crate::error::wrong_context::{Spans, ensure_of_graph};
use crate::graph::node::{Node, typed};
use crate::param::bind::of_event;
use crate::param::node_event::NodeEvent;
use crate::state::bindings::BoundNode;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;

typed! {
    /// A node that records an [`Event`].
    ///
    /// Streams, other graphs and the host can wait for the event, and so for this point of the
    /// graph. The node keeps the event alive.
    ///
    /// Add one with [`Frontier::record`].
    #[doc(alias = "cudaEventRecordNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeEventRecord")]
    EventRecordNode, EventRecord
}

typed! {
    /// A node that waits for an [`Event`].
    ///
    /// The nodes after it run once the event has been reached. The node keeps the event alive.
    ///
    /// Add one with [`Frontier::wait`].
    #[doc(alias = "cudaEventWaitNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeWaitEvent")]
    EventWaitNode, EventWait
}

impl EventRecordNode {
    /// The event that the node records.
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed.
    #[doc(alias = "cuGraphEventRecordNodeGetEvent")]
    #[doc(alias = "cudaGraphEventRecordNodeGetEvent")]
    pub fn event(&self) -> Result<Event> {
        match self.node_params()? {
            NodeParams::EventRecord(event) => Ok(event),
            // A handle is made only for a record of its kind, and a record keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// Replaces the event that the node records. Existing executables keep the old one.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed.
    /// - [`Error::Handles`](crate::Error::Handles), if the event belongs to another context, or the
    ///   driver reports an error.
    ///
    /// The node is then unchanged.
    #[doc(alias = "cuGraphEventRecordNodeSetEvent")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphEventRecordNodeSetEvent")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set_event(&self, event: &Event) -> Result<()> {
        self.getting(ensure_own(self.graph(), event))?;
        self.replace(NodeParams::EventRecord(event.clone()), Owners::new(), &mut record(event))
    }
}

impl EventWaitNode {
    /// The event that the node waits for.
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed.
    #[doc(alias = "cuGraphEventWaitNodeGetEvent")]
    #[doc(alias = "cudaGraphEventWaitNodeGetEvent")]
    pub fn event(&self) -> Result<Event> {
        match self.node_params()? {
            NodeParams::EventWait(event) => Ok(event),
            _ => Err(self.removed()),
        }
    }

    /// Replaces the event that the node waits for. Existing executables keep the old one.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed.
    /// - [`Error::Handles`](crate::Error::Handles), if the driver reports an error.
    ///
    /// The node is then unchanged.
    #[doc(alias = "cuGraphEventWaitNodeSetEvent")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphEventWaitNodeSetEvent")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set_event(&self, event: &Event) -> Result<()> {
        self.replace(NodeParams::EventWait(event.clone()), Owners::new(), &mut wait(event.as_raw()))
    }
}

impl Frontier<'_> {
    /// Adds a node that records `event` once all nodes of the frontier have ended. Every launch
    /// records it anew.
    ///
    /// The event may be a [parameter](crate::GraphParam) of the graph.
    ///
    /// If two events have timing enabled, [`Event::elapsed_since`] measures the time between their
    /// nodes after the launch has ended.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`ConditionError::NotInBody`](crate::ConditionError::NotInBody), if the frontier lies in
    ///   the body of a conditional node.
    /// - [`NodeError::Removed`](crate::NodeError::Removed), if a node of the frontier was removed.
    /// - [`ParamError::Foreign`](crate::ParamError::Foreign), if the parameter is of another graph.
    /// - [`Error::Handles`](crate::Error::Handles), if the event belongs to another context, or the
    ///   driver reports an error.
    #[doc(alias = "cuGraphAddEventRecordNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddEventRecordNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaEventRecord")]
    pub fn record<'e>(&self, event: impl NodeEvent<'e>) -> Result<EventRecordNode> {
        let placeholder = event.placeholder();
        let event = event.event();
        ensure_own(self.graph(), event)?;
        let node_params = NodeParams::EventRecord(event.clone());
        let bound = || BoundNode::Record(event.clone());
        self.add_event(node_params, &mut record(event), placeholder, bound).map(EventRecordNode::wrap)
    }

    /// Adds a node that waits for the latest record of `event` before the launch. If the event was
    /// never recorded, the node ends at once. The event may belong to another context, and may be a
    /// [parameter](crate::GraphParam) of the graph.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`ConditionError::NotInBody`](crate::ConditionError::NotInBody), if the frontier lies in
    ///   the body of a conditional node.
    /// - [`NodeError::Removed`](crate::NodeError::Removed), if a node of the frontier was removed.
    /// - [`ParamError::Foreign`](crate::ParamError::Foreign), if the parameter is of another graph.
    /// - [`Error::Handles`](crate::Error::Handles), if the driver reports an error.
    #[doc(alias = "cuGraphAddEventWaitNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddEventWaitNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaStreamWaitEvent")]
    pub fn wait<'e>(&self, event: impl NodeEvent<'e>) -> Result<EventWaitNode> {
        let placeholder = event.placeholder();
        let event = event.event();
        let node_params = NodeParams::EventWait(event.clone());
        let bound = || BoundNode::Wait(event.clone());
        self.add_event(node_params, &mut wait(event.as_raw()), placeholder, bound).map(EventWaitNode::wrap)
    }

    fn add_event(
        &self,
        node_params: NodeParams,
        params: &mut CUgraphNodeParams,
        placeholder: Option<Placeholder>,
        bound: impl FnOnce() -> BoundNode,
    ) -> Result<Node> {
        let binding = placeholder.map(|placeholder| of_event(placeholder, bound())).transpose()?;
        match binding.flatten() {
            None => self.add(node_params, Owners::new(), params),
            Some(binding) => self.add_bound(node_params, Owners::new(), params, binding),
        }
    }
}

pub(crate) fn ensure_own(graph: &impl Spans, event: &Event) -> Result<()> {
    ensure_of_graph(graph, event.context(), || "the event to record")
}

/// The driver's parameters of a node that records an event.
pub(crate) fn record(event: &Event) -> CUgraphNodeParams {
    event.set_in_graphs();
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    let fields = &mut params.__bindgen_anon_1;
    fields.eventRecord.event = event.as_raw();
    params
}

/// The driver's parameters of a node that waits for an event.
pub(crate) fn wait(event: CUevent) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    let fields = &mut params.__bindgen_anon_1;
    fields.eventWait.event = event;
    params
}
