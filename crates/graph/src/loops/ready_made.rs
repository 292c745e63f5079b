//! Noting what a ready-made loop or branch goes by.

use std::sync::Arc;

use crate::graph::node::Node;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::loop_control::{DecisionPoint, LoopControl, LoopDecision};
use crate::state::params::NodeParams;

impl GraphGuard<'_> {
    /// Says of a conditional node and the nodes that decide about it that they are a ready-made
    /// loop or branch.
    pub(super) fn make_ready<'n>(
        &mut self,
        node: NodeId,
        deciders: impl IntoIterator<Item = (&'n Node, DecisionPoint)>,
        ready: &Arc<LoopControl>,
    ) {
        if let Some(NodeParams::Conditional(conditional)) =
            self.record_mut(node).map(|record| &mut record.node_params)
        {
            conditional.control = Some(Arc::clone(ready));
        }
        for (decider, stand) in deciders {
            if let Some(record) = self.record_mut(decider.id()) {
                record.owners.set_decision(LoopDecision { control: Arc::clone(ready), point: stand });
            }
        }
    }
}
