//! One graph, and what it is part of.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

use super::address_space::AddressSpace;
use super::limiting_nodes::LimitingNodes;
use super::user_object::ObjectRefs;

/// What a graph is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Nothing: the user destroys it.
    User,
    /// A child node, into which it was cloned or moved.
    Child { node: u64, moved: bool },
    /// A conditional node, whose body it is.
    Body { node: u64 },
}

/// The handle of a condition, known to the root graph.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition {
    pub(crate) default: Option<u32>,
    pub(crate) context: u64,
    /// The node that uses it, and its uid: it may be gone.
    pub(crate) node: Option<(u64, u64)>,
}

/// A graph.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Never reused.
    pub(crate) uid: u64,
    pub(crate) owner: Owner,
    /// A graph that it lies in, be it far out, and the uid of that; as long as both live, it does.
    /// 0 where none is known.
    pub(super) above: Cell<(u64, u64)>,
    /// The nodes in the order of creation, by their numbers in the graph.
    pub(crate) order: BTreeMap<u32, u64>,
    pub(crate) next_local: u32,
    pub(crate) limiting: LimitingNodes,
    pub(crate) objects: ObjectRefs,
    /// In a clone: the node here and its uid, for the uid of each node of the original.
    pub(crate) from_original: HashMap<u64, (u64, u64)>,
    /// The root graph's conditions by number.
    pub(crate) conditions: BTreeMap<u64, Condition>,
    pub(crate) next_condition: u64,
    pub(crate) addresses: AddressSpace,
    /// Executables that live, counted where only one may.
    pub(crate) live_execs: usize,
    /// Moved into itself or into its own part: lost for good.
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
