//! Data races, as reports have them.

use core::fmt;
use core::ops::Range;

use cuda_handles::MemoryKind;
use cuda_launch::Access;

use super::node::FoundNode;

/// Two nodes that access the same bytes without an order between them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Race {
    /// One node and its access.
    pub first: RacingAccess,
    /// The other node and its access.
    pub second: RacingAccess,
    /// The allocation, if it is known.
    pub memory: Option<RacingMemory>,
    /// The first bytes that both access: offsets from the start of the allocation, or addresses if
    /// the allocation is unknown.
    pub bytes: Range<u64>,
    /// How many more pairs of accesses of the two nodes race.
    pub more: u32,
    /// The edge that would fix it: from the first to the second of these nodes, which are the two
    /// nodes themselves or nodes around them.
    pub edge: Box<(FoundNode, FoundNode)>,
    /// Whether this edge exists already, but is of a kind that does not surely order the nodes.
    /// Then the fix is another kind ([`Graph::set_edge_kind`](crate::Graph::set_edge_kind)).
    pub are_linked: bool,
    /// Whether there is a path, but one over edges that do not wait for the end of a kernel
    /// ([`EdgeKind::Programmatic`](crate::EdgeKind::Programmatic) and the like). There is no race
    /// if the kernels that these edges enter wait (`griddepcontrol.wait`) before they access the
    /// memory.
    pub may_wait: bool,
}

/// The access of one of two racing nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RacingAccess {
    /// The node.
    pub node: FoundNode,
    /// Whether it reads or writes.
    pub access: Access,
    /// The role of the memory for the node: the name of a kernel's parameter, or a word such as
    /// `source`.
    pub role: &'static str,
    /// Whether the role is the name of a kernel's parameter.
    pub is_argument: bool,
}

/// The memory that two nodes access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct RacingMemory {
    /// Its address.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The kind of memory.
    pub kind: MemoryKind,
}

impl fmt::Display for RacingMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the {} memory of {} bytes at {:#x}", self.kind, self.bytes, self.address)
    }
}

impl fmt::Display for RacingAccess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, access, role, is_argument } = self;
        match is_argument {
            true => write!(formatter, "{node} {access} it (argument `{role}`)"),
            false => write!(formatter, "{node} {access} it (its {role})"),
        }
    }
}

impl Race {
    pub(super) fn remedy(&self) -> String {
        let (from, to) = &*self.edge;
        match (self.may_wait, self.are_linked) {
            (true, false) => {
                format!("have the kernel wait, or make the order certain by a full edge from {from} to {to}")
            }
            (true, true) => format!(
                "have the kernel wait, or make the edge from {from} to {to} a full one \
                 (Graph::set_edge_kind)"
            ),
            (false, true) => format!(
                "make the edge from {from} to {to}, which does not put them in order, a full one \
                 (Graph::set_edge_kind)"
            ),
            (false, false) => {
                format!("an edge from {from} to {to}, or the other way round, puts them in order")
            }
        }
    }
}

impl fmt::Display for Race {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.bytes;
        match self.may_wait {
            true => formatter.write_str("data race, unless kernels wait: ")?,
            false => formatter.write_str("data race: ")?,
        }
        match &self.memory {
            Some(memory) => write!(formatter, "bytes {start}..{end} of {memory}: ")?,
            None => write!(formatter, "memory at {start:#x}..{end:#x}: ")?,
        }
        write!(formatter, "{}, {}", self.first, self.second)?;
        if self.more > 0 {
            write!(formatter, " ({} more of their accesses overlap)", self.more)?;
        }
        formatter.write_str(match self.may_wait {
            true => {
                ", and the path between them does not wait for the end of each kernel on it, unless the \
                 kernels do (griddepcontrol.wait)"
            }
            false => ", and there is no path between them",
        })
    }
}
