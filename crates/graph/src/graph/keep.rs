//! Keeping more with a node than what it is known to use.

use cuda_handles::Owner;

use crate::error::Result;
use crate::graph::node::Node;

impl Node {
    /// Keeps `owner` alive for as long as the node is in its graph, and in every executable and
    /// clone made from now on, whatever parameters the node gets.
    ///
    /// For what the node reaches in ways that the library cannot see, such as addresses inside
    /// structs. No driver call, unless the graph was [adopted](crate::Graph::from_raw) and does not
    /// retain yet what its nodes use.
    ///
    /// # Errors
    /// The node was removed, or its graph moved; or what the driver answers where it is called. The
    /// owner is not kept then.
    pub fn keep(&self, owner: impl Into<Owner>) -> Result<()> {
        // Declared before the lock, so that what is not kept is dropped after it.
        let owner = owner.into();
        let mut guard = self.graph().look()?;
        guard.retain_if_adopted()?;
        match guard.keep_with(self.id(), &owner) {
            true => Ok(()),
            false => Err(self.removed()),
        }
    }
}
