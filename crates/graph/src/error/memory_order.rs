//! The error of memory that a graph allocates and nodes use in the wrong order.

use core::fmt;

use crate::wording::Named;

/// What is wrong with the order of the nodes that use memory of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Disorder {
    /// A node that uses the memory does not wait for its allocation.
    UseBeforeAllocation,
    /// The memory is freed without waiting for the end of a node that uses it.
    UseAfterFree,
    /// The free does not wait for the allocation.
    FreeBeforeAllocation,
}

/// Nodes of which one has to end before the other starts, and no way of edges says so. They are
/// named as in [`Node::name`](crate::Node::name).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryOrder {
    /// What is wrong.
    pub what: Disorder,
    /// The allocation node of the memory.
    pub allocation: String,
    /// The node that has to end first.
    pub first: String,
    /// The node that has to start after that.
    pub second: String,
}

impl fmt::Display for MemoryOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.what;
        let [allocation, first, second] =
            [&self.allocation, &self.first, &self.second].map(|name| Named(name));
        match what {
            Disorder::UseBeforeAllocation => {
                write!(
                    formatter,
                    "node `{second}` uses the memory of `{allocation}` and does not wait for it"
                )
            }
            Disorder::UseAfterFree => write!(
                formatter,
                "node `{second}` frees the memory of `{allocation}` and does not wait for the end of `{first}`, which uses it"
            ),
            Disorder::FreeBeforeAllocation => {
                write!(
                    formatter,
                    "node `{second}` frees the memory of `{allocation}` and does not wait for it"
                )
            }
        }
    }
}
