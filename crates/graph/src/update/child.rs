//! Updates of child graph nodes.

use std::sync::Arc;

use cuda_handles::Event;
use cuda_handles::capture::Scratch;
use cuda_handles::internal::alone_in_order;

use crate::error::Result;
use crate::exec::instantiate::awaited_streams;
use crate::exec::launch::LaunchState;
use crate::exec::node_updates::have_attributes;
use crate::exec::recorded_events::recorded_event;
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::node::ChildGraphNode;
use crate::node::child::{CLONED, copy_for, ensure_child, params};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::update::exec_node::{ExecNode, NewParams, not_possible};

impl ExecNode<'_, ChildGraphNode> {
    /// Runs another graph at later launches of the executable, as it is now; as
    /// [`ChildGraphNode::set_graph`] does for the graph's node.
    ///
    /// The new graph has as many nodes of the same kinds as the one before, with the same edges.
    /// Each node inside gets the parameters of its counterpart, whatever updates have set before,
    /// and stays disabled if it was. The driver finds the counterparts from the ends of the graph
    /// on: nodes that none depends on by the order in which they were added, then those that each
    /// depends on, by the order in which the edges were added.
    ///
    /// The nodes of the [embedded graph](ChildGraphNode::embedded) still stand for the
    /// executable's. What they record and which attributes they have is then not known, so updates
    /// of these are refused.
    ///
    /// Calls `cuGraphExecNodeSetParams` (CUDA 12.2), and reads the nodes of `graph`.
    ///
    /// # Errors
    /// - The errors of [`Frontier::child`](crate::Frontier::child).
    /// - [`UpdateError::NotPossible`](crate::UpdateError::NotPossible): the graph has another
    ///   shape; or a kernel inside has the handle of a condition.
    /// - [`ParamError::Bound`](crate::ParamError::Bound): a node inside gets values from graph
    ///   parameters.
    /// - [`UpdateError::NotInExecutable`](crate::UpdateError::NotInExecutable),
    ///   [`UpdateError::Lent`](crate::UpdateError::Lent),
    ///   [`NodeError::Removed`](crate::NodeError::Removed): the node cannot be updated.
    ///
    /// The executable is then unchanged.
    #[doc(alias = "cuGraphExecChildGraphNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    #[doc(alias = "cudaGraphExecChildGraphNodeSetParams")]
    #[doc(alias = "cudaGraphExecNodeSetParams")]
    pub fn set_graph(&mut self, graph: &Graph) -> Result<()> {
        let node: &Node = self.node;
        node.getting(ensure_child(node.graph(), graph))?;
        let mut raw = params(core::ptr::null_mut(), CLONED);
        let mut new = NewParams::new(NodeParams::Empty, Owners::new(), &mut raw);
        let former_events;
        let (keys, key) = self.exec.key_of(node)?;
        let mut guards = keys.enter_with(graph)?;
        let record = guards.ours.record(key).ok_or_else(|| guards.ours.removed(key))?;
        let subgraph = record.within;
        new.node_params = record.node_params.clone();
        let snapshot = copy_for(&mut guards, subgraph, None, "")?;
        guards.ours.ensure_may_hold_all(subgraph, &snapshot)?;
        let inside = nodes_inside(&guards.ours, key);
        inside.iter().try_for_each(|id| self.exec.ensure_unbound(&guards.ours, *id))?;
        self.ensure_may_replace((&guards.ours, key), &inside)?;
        let with_attributes = have_attributes(snapshot.node_params());
        new.owners = snapshot.into_owners();
        new.raw.__bindgen_anon_1.graph.graph = guards.other_raw()?;
        {
            let _alone = alone_in_order(node.graph().context())?;
            self.exec.call(&guards.ours, key, (&guards.ours, key), &mut new)?;
        }
        self.exec.commit(key, &mut new, &inside);
        self.exec.updates.replace(&inside, with_attributes);
        let updates = &self.exec.updates;
        let inside: Vec<NodeId> = inside.into_iter().map(|key| updates.counterpart(key)).collect();
        let (source, _) = guards.other();
        former_events = self.exec.launches.take_over(source, updates.counterpart(key), &inside);
        drop(guards);
        drop(former_events);
        Ok(())
    }

    /// Refuses a child graph in which a kernel has, or had, the handle of a condition.
    fn ensure_may_replace(&self, named: (&GraphGuard<'_>, NodeId), inside: &[NodeId]) -> Result<()> {
        let mut deciding = self.exec.updates.deciding();
        if deciding.any(|id| inside.contains(&id) || named.0.record(id).is_none()) {
            let why = "a kernel inside decides about a condition, and a loop might never end without it; \
                       instantiate again";
            return Err(not_possible(named, why));
        }
        Ok(())
    }
}

/// The nodes of all graphs in a node.
fn nodes_inside(guard: &GraphGuard<'_>, node: NodeId) -> Vec<NodeId> {
    let embedded = guard.record(node).and_then(|record| record.node_params.embedded());
    embedded.map(|subgraph| guard.ids_within(subgraph)).unwrap_or_default()
}

impl LaunchState {
    /// Launches also use what the nodes of another graph do, in place of what nodes inside of
    /// `child` did. Returns the events that they recorded.
    fn take_over(&mut self, source: &GraphGuard<'_>, child: NodeId, inside: &[NodeId]) -> Vec<Event> {
        for stream in awaited_streams(source) {
            if !self.awaited.contains(&stream) {
                self.awaited.push(stream);
            }
        }
        let new: Vec<Scratch> =
            source.scratch().into_iter().filter(|scratch| !self.scratch.contains(scratch)).collect();
        if !new.is_empty() {
            let mut scratch = [&*self.scratch, &new].concat();
            Scratch::sort(&mut scratch);
            self.scratch = Arc::from(scratch);
        }
        let events = source.records().filter_map(|(_, record)| recorded_event(record)).collect();
        self.events.replace(child, inside, events)
    }
}
