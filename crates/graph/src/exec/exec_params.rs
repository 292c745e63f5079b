//! The graph parameters of an executable: their values, and the nodes that are to be updated.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::state::bindings::{Binding, ParamValue, Place};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;

/// The parameters of an executable.
#[derive(Debug)]
pub(crate) struct ExecParams {
    /// The number of the hierarchy whose parameters these are.
    graph: u64,
    values: Vec<ParamValue>,
    /// The nodes that use each parameter.
    users: Vec<SmallVec<[User; 4]>>,
    pub(crate) nodes: Vec<ExecBound>,
    places: HashMap<NodeId, u32>,
    /// The nodes that the next launch updates. It has room for all of them.
    pending: Vec<u32>,
}

/// A node that uses a parameter.
#[derive(Clone, Copy, Debug)]
struct User {
    /// Its place in the list of nodes.
    node: u32,
    /// Whether the parameter is in the driver's parameters of the node, and does not enable it
    /// alone.
    is_within: bool,
}

/// A node of an executable that uses parameters.
#[derive(Debug)]
pub(crate) struct ExecBound {
    pub(crate) id: NodeId,
    pub(crate) binding: Binding,
    /// Whether the driver's node is enabled.
    pub(crate) is_enabled: bool,
    /// Whether the binding has memory of parameters that the executable does not keep for the node.
    pub(crate) has_new_memory: bool,
    /// Whether the driver's node has other parameters than the binding.
    pub(crate) is_stale: bool,
    is_pending: bool,
}

impl ExecParams {
    /// The parameters of an executable that is made now; `None` if the graph has none.
    pub(crate) fn of(guard: &GraphGuard<'_>) -> Option<Box<Self>> {
        if guard.bindings.is_empty() {
            return None;
        }
        let values = guard.bindings.values().to_vec();
        let mut params = Self {
            graph: guard.number(),
            users: vec![SmallVec::new(); values.len()],
            values,
            nodes: Vec::new(),
            places: HashMap::new(),
            pending: Vec::new(),
        };
        for (id, binding) in guard.bindings.nodes() {
            params.add(id, binding.clone());
        }
        params.pending.reserve(params.nodes.len());
        params.disable_nodes();
        Some(Box::new(params))
    }

    fn add(&mut self, id: NodeId, binding: Binding) {
        // Memory runs out before the number does.
        let node = self.nodes.len() as u32;
        for one in &binding.uses {
            let is_within = one.place != Place::Enabled;
            let Some(users) = self.users.get_mut(one.param as usize) else { continue };
            match users.last_mut() {
                Some(known) if known.node == node => known.is_within |= is_within,
                _ => users.push(User { node, is_within }),
            }
        }
        self.places.insert(id, node);
        self.nodes.push(ExecBound {
            id,
            binding,
            is_enabled: true,
            has_new_memory: false,
            is_stale: false,
            is_pending: false,
        });
    }

    /// Nodes of a new executable are enabled, whatever the parameters say.
    fn disable_nodes(&mut self) {
        for param in 0..self.values.len() {
            if let Some(ParamValue::Enabled(false)) = self.values.get(param) {
                self.touch(param);
            }
        }
    }

    /// The number of the hierarchy whose parameters these are.
    pub(crate) fn graph(&self) -> u64 {
        self.graph
    }

    /// The number of parameters.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether a node uses parameters.
    pub(crate) fn has(&self, id: NodeId) -> bool {
        self.places.contains_key(&id)
    }

    /// The value of a parameter.
    pub(crate) fn value(&self, param: u32) -> Option<&ParamValue> {
        self.values.get(param as usize)
    }

    /// Whether nodes wait for an update.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Sets a value. Returns the one before, to be dropped by the caller; `None` if there is no
    /// such parameter, or it has the same value.
    pub(crate) fn set(&mut self, param: u32, value: ParamValue) -> Option<ParamValue> {
        let known = self.values.get_mut(param as usize).filter(|known| !known.is_same(&value))?;
        let before = core::mem::replace(known, value);
        self.touch(param as usize);
        Some(before)
    }

    /// Lets the next launch update the nodes that use a parameter.
    fn touch(&mut self, param: usize) {
        for &User { node, is_within } in self.users.get(param).into_iter().flatten() {
            let Some(bound) = self.nodes.get_mut(node as usize) else { continue };
            // Also of a node that is pending, and that a launch which failed has updated.
            bound.is_stale |= is_within;
            if !bound.is_pending {
                bound.is_pending = true;
                self.pending.push(node);
            }
        }
    }

    /// The places of the nodes that wait for an update.
    pub(crate) fn pending_mut(&mut self) -> &mut Vec<u32> {
        &mut self.pending
    }

    /// A node with the values of all parameters.
    pub(crate) fn node_mut(&mut self, place: u32) -> Option<(&mut ExecBound, &[ParamValue])> {
        Some((self.nodes.get_mut(place as usize)?, &self.values))
    }

    /// Notes that all nodes are up to date.
    pub(crate) fn done(&mut self) {
        for &node in &self.pending {
            if let Some(bound) = self.nodes.get_mut(node as usize) {
                bound.is_pending = false;
            }
        }
        self.pending.clear();
    }
}

impl ExecBound {
    /// Whether its parameters say that it is enabled.
    pub(crate) fn wants_enabled(&self, values: &[ParamValue]) -> bool {
        let mut flags = self.binding.uses.iter().filter(|one| one.place == Place::Enabled);
        flags.all(|one| !matches!(values.get(one.param as usize), Some(ParamValue::Enabled(false))))
    }
}
