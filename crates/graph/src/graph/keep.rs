//! Keeping more alive with a node than it is known to use.

use cuda_handles::Owner;

use crate::error::Result;
use crate::graph::node::Node;

impl Node {
    /// Keeps `owner` alive for as long as the node is in its graph, and as long as any executable
    /// and clone made from now on. Other parameters do not change that.
    ///
    /// This is for memory that the node reaches in ways invisible to the library, such as through
    /// addresses inside structs. No driver call, unless the graph was
    /// [adopted](crate::Graph::from_raw) and does not retain yet what its nodes use.
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed;
    /// [`NodeError::GraphMoved`](crate::NodeError::GraphMoved), if its graph was moved; or the
    /// driver's error, where the driver is called. The owner is not kept then.
    pub fn keep(&self, owner: impl Into<Owner>) -> Result<()> {
        // Declared before the guard, so that an owner that is not kept is dropped after the lock.
        let owner = owner.into();
        let mut guard = self.graph().look()?;
        guard.retain_if_adopted()?;
        match guard.keep_with(self.id(), &owner) {
            true => Ok(()),
            false => Err(self.removed()),
        }
    }
}
