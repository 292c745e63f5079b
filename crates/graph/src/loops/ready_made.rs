//! Noting what a ready-made loop or branch goes by.

use std::sync::Arc;

use crate::graph::Locked;
use crate::node::Node;
use crate::state::ids::NodeId;
use crate::state::loop_control::{Decision, Ready, Stand};
use crate::state::params::Detail;

impl Locked<'_> {
    /// Says of a conditional node and the nodes that decide about it that they are a ready-made
    /// loop or branch.
    pub(super) fn make_ready<'n>(
        &mut self,
        node: NodeId,
        deciders: impl IntoIterator<Item = (&'n Node, Stand)>,
        ready: &Arc<Ready>,
    ) {
        if let Some(Detail::Conditional(conditional)) = self.row_mut(node).map(|row| &mut row.detail) {
            conditional.ready = Some(Arc::clone(ready));
        }
        for (decider, stand) in deciders {
            if self.row(decider.id()).is_some() {
                self.deciding.insert(decider.id().index, Decision { ready: Arc::clone(ready), stand });
            }
        }
    }
}
