//! Nodes, as reports name them.

use core::fmt;

use crate::graph::node::Node;
use crate::wording::Named;

/// A node in a report: its handle, its name, and the nodes around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundNode {
    pub(crate) node: Node,
    pub(crate) name: String,
    pub(crate) within: Vec<String>,
}

impl FoundNode {
    /// The handle of the node.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The node's name when the graph was checked; see [`Node::name`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the nodes around it, from the outside in, each with the body if there are
    /// several. If there are very many, only the innermost.
    #[must_use]
    pub fn within(&self) -> &[String] {
        &self.within
    }
}

impl fmt::Display for FoundNode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`", Named(&self.name))?;
        match self.within.split_last() {
            None => Ok(()),
            Some((inner, outer)) => {
                formatter.write_str(" (in ")?;
                outer.iter().try_for_each(|name| write!(formatter, "{} > ", Named(name)))?;
                write!(formatter, "{})", Named(inner))
            }
        }
    }
}
