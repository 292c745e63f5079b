//! Keeping more with a node than what it is known to use.

use cuda_handles::Owner;

use super::handle::Node;
use crate::error::Result;

impl Node {
    /// Keeps `owner` alive for as long as the node is in its graph, and in every executable and clone made from now on, whatever parameters the
    /// node gets.
    ///
    /// For what the node reaches in ways that the library cannot see, such as addresses inside structs. No driver call.
    ///
    /// # Errors
    /// The node was removed, or its graph moved.
    pub fn keep(&self, owner: impl Into<Owner>) -> Result<()> {
        // Declared before the lock, so that what is not kept is dropped after it.
        let owner = owner.into();
        let mut locked = self.graph().look()?;
        match locked.keep_with(self.id(), &owner) {
            true => Ok(()),
            false => Err(self.removed()),
        }
    }
}
