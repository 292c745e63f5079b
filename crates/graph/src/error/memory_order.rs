//! The error of nodes that use memory of a graph in the wrong order.

use core::fmt;

use crate::wording::Named;

/// The kind of wrong order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Disorder {
    /// A node uses the memory without waiting for its allocation.
    UseBeforeAllocation,
    /// The memory is freed without waiting for a node that uses it.
    UseAfterFree,
    /// The memory is freed without waiting for its allocation.
    FreeBeforeAllocation,
}

/// Two nodes of which one has to complete before the other starts, with no path of edges between
/// them. Nodes are given by [name](crate::Node::name).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryOrder {
    /// The kind of wrong order.
    pub what: Disorder,
    /// The allocation node of the memory.
    pub allocation: String,
    /// The node that has to complete first.
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

pub(crate) struct Orders<'a>(pub(crate) &'a [MemoryOrder]);

impl fmt::Display for Orders<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for order in self.0 {
            write!(formatter, "{separator}{order}")?;
            separator = "; ";
        }
        Ok(())
    }
}
