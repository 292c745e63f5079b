//! Footprints: the bytes that a node reads and writes, where these are known whole.
//!
//! The race check compares declared accesses, and lists nodes that it knows too little of. Order is
//! left out by stricter rules: a node is *transparent* if its footprint is everything that connects
//! it with other nodes, and *opaque* otherwise. An opaque node keeps its order with all nodes.
//!
//! | File | Contents |
//! | --- | --- |
//! | `mod.rs` | [`Footprint`], and when two meet |
//! | [`read`] | the footprint of a node, by its parameters and owners: which nodes are transparent |
//! | [`index`] | [`AccessIndex`](index::AccessIndex): the accesses that share bytes with another |

pub(crate) mod index;
mod read;

use crate::check::model::AddressSpace;
use crate::check::region::Region;

/// The bytes that a node touches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Footprint {
    /// All of its accesses.
    Known(Touches),
    /// They are not known whole.
    Opaque(WhyOpaque),
}

/// The accesses of one node.
pub(crate) type Touches = Box<[Touch]>;

/// An access to some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touch {
    pub(crate) space: AddressSpace,
    pub(crate) region: Region,
    pub(crate) writes: bool,
}

/// Why a footprint is not known whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum WhyOpaque {
    /// The kernel is untyped, or declared as `unsafe fn`.
    Kernel,
    /// The kernel's image may have state of its own.
    Image,
    /// Memory that has other addresses, or that this library has not allocated.
    Memory,
    /// A node of another type than kernels, copies and fills, or one that other code has changed.
    Node,
}

impl Footprint {
    /// Of a node of another type than kernels, copies and fills.
    pub(crate) const OPAQUE: Self = Self::Opaque(WhyOpaque::Node);

    /// The accesses, if they are known.
    pub(crate) fn touches(&self) -> Option<&[Touch]> {
        match self {
            Self::Known(touches) => Some(touches),
            Self::Opaque(_) => None,
        }
    }
}

impl Touch {
    /// That a kernel sets a condition, by the condition's number.
    pub(crate) fn of_condition(number: u64) -> Self {
        Self { space: AddressSpace::Condition(number), region: Region::linear(0, 1), writes: true }
    }

    /// Whether two accesses share a byte.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        self.space == other.space && self.region.overlap(&other.region).is_some()
    }

    /// Whether one of two accesses has to come before the other: both share a byte, and one of them
    /// writes.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        (self.writes || other.writes) && self.shares(other)
    }

    /// Whether it writes every byte of another access.
    pub(crate) fn overwrites(&self, other: &Self) -> bool {
        let (own, others) = (self.region.bounds(), other.region.bounds());
        self.writes
            && self.space == other.space
            && (self.region == other.region
                || self.region.is_linear() && own.0 <= others.0 && others.1 <= own.1)
    }
}
