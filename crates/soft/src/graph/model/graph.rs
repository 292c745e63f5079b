//! A graph and its owner.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

use super::address_space::AddressSpace;
use super::limiting_nodes::LimitingNodes;
use super::user_object::ObjectRefs;

/// The owner of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The user, who destroys it.
    User,
    /// A child node, into which it was cloned or moved.
    Child { node: u64, moved: bool },
    /// A conditional node, whose body it is.
    Body { node: u64 },
}

/// A conditional handle of a root graph.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition {
    pub(crate) default: Option<u32>,
    pub(crate) context: u64,
    /// The node that uses it, with its uid, since it may be destroyed.
    pub(crate) node: Option<(u64, u64)>,
}

/// A graph.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Never reused.
    pub(crate) uid: u64,
    pub(crate) owner: Owner,
    /// Any ancestor with its uid, 0 for none: a shortcut to the root. A graph lives as long as its
    /// ancestors, so it stays valid as long as both live.
    pub(super) above: Cell<(u64, u64)>,
    /// The nodes by local id, which is the order of creation.
    pub(crate) order: BTreeMap<u32, u64>,
    pub(crate) next_local: u32,
    pub(crate) limiting: LimitingNodes,
    pub(crate) objects: ObjectRefs,
    /// In a clone: the node and its uid by the uid of the original's node.
    pub(crate) from_original: HashMap<u64, (u64, u64)>,
    /// The conditions of a root graph by number.
    pub(crate) conditions: BTreeMap<u64, Condition>,
    pub(crate) next_condition: u64,
    pub(crate) addresses: AddressSpace,
    /// The number of live executables made from it.
    pub(crate) live_execs: usize,
    /// Moved into itself or into a part of itself: lost for good.
    pub(crate) is_lost: bool,
}

impl Graph {
    pub(super) fn new(uid: u64, owner: Owner) -> Self {
        Self {
            uid,
            owner,
            above: Cell::new((0, 0)),
            order: BTreeMap::new(),
            next_local: 0,
            limiting: LimitingNodes::default(),
            objects: ObjectRefs::default(),
            from_original: HashMap::new(),
            conditions: BTreeMap::new(),
            next_condition: 1,
            addresses: AddressSpace::default(),
            live_execs: 0,
            is_lost: false,
        }
    }
}
