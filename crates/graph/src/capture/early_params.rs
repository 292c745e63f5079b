//! Parameters of a graph that is still captured.

use crate::state::bindings::Bindings;
use crate::state::hierarchy::Hierarchy;

/// The parameters of a graph that does not exist yet, under the number that it will have.
#[derive(Debug)]
pub(super) struct EarlyParams {
    pub(super) number: u64,
    pub(super) bindings: Bindings,
}

impl Default for EarlyParams {
    fn default() -> Self {
        Self { number: Hierarchy::next_number(), bindings: Bindings::default() }
    }
}
