//! The graph parameters of an executable: their values, and the nodes that are to be updated.

use std::collections::HashMap;

use cuda_handles::{Buffer, FillLayout, Owner};
use smallvec::SmallVec;

use crate::exec::spare::spare_fill;
use crate::state::bindings::{Binding, ParamValue, Place};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;

/// The parameters of an executable.
///
/// They keep the memory and events alive that the executable's nodes have from them. A value that
/// is replaced stays until all nodes have the new one; then the executable retires it.
#[derive(Debug)]
pub(crate) struct ExecParams {
    /// The number of the hierarchy whose parameters these are.
    graph: u64,
    values: Vec<ParamValue>,
    /// For each parameter that has changed since all nodes were up to date, its value then.
    before: Vec<Option<ParamValue>>,
    /// The parameters that have changed since then.
    changed: Vec<u32>,
    /// The nodes that use each parameter.
    users: Vec<SmallVec<[User; 4]>>,
    pub(crate) nodes: Vec<ExecBound>,
    places: HashMap<NodeId, u32>,
    /// The nodes that the next launch updates, apart from those of changed parameters. It has room
    /// for all nodes.
    pending: Vec<u32>,
    /// Values of before that nodes may still have, because the update of one of them failed after
    /// others.
    partly: Vec<ParamValue>,
    /// Memory for fills that parameters disable.
    spare: Option<Buffer<u32>>,
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
    /// The node by which the driver knows it.
    pub(crate) id: NodeId,
    /// The node of the graph that the parameters are of.
    pub(crate) counterpart: NodeId,
    pub(crate) binding: Binding,
    /// The fill of a row that the node was made with, if parameters can disable it.
    ///
    /// A disabled fill of a row loses the order of the nodes before and after it (seen on driver
    /// 580). So it fills [spare memory](super::spare) instead.
    pub(crate) row: Option<FillLayout>,
    /// That fill.
    pub(crate) spare_fill: Option<FillLayout>,
    /// Whether the driver's node is enabled, or fills memory of its own.
    pub(crate) is_enabled: bool,
    /// Whether the driver's node has other parameters than the binding.
    pub(crate) is_stale: bool,
    /// Whether it is to be enabled, as of the last time that values were put into the binding.
    pub(crate) is_on: bool,
    /// Whether a parameter enables it.
    has_flags: bool,
    is_pending: bool,
}

/// The nodes that an update is about, by their places.
pub(crate) struct PendingNodes {
    pub(crate) nodes: Vec<u32>,
    /// The number of those that wait whatever the parameters are.
    always: usize,
}

impl ExecParams {
    /// The parameters of an executable that is made now; `None` if the graph has none. `spare` is
    /// from [`enter_with_spare`](crate::graph::Graph::enter_with_spare).
    pub(crate) fn of(guard: &GraphGuard<'_>, spare: Option<Buffer<u32>>) -> Option<Box<Self>> {
        if guard.bindings.is_empty() {
            return None;
        }
        let values = guard.bindings.values().to_vec();
        let mut params = Self {
            graph: guard.number(),
            users: vec![SmallVec::new(); values.len()],
            before: vec![None; values.len()],
            changed: Vec::with_capacity(values.len()),
            values,
            nodes: Vec::new(),
            places: HashMap::new(),
            pending: Vec::new(),
            partly: Vec::new(),
            spare,
        };
        // In the order of their additions, so that the same error comes first each time.
        let mut nodes: Vec<_> = guard.bindings.nodes().collect();
        nodes.sort_unstable_by_key(|(id, _)| id.number);
        for (id, binding) in nodes {
            params.add(id, binding.clone(), guard.row_of(id, binding));
        }
        params.pending.reserve(params.nodes.len());
        params.disable_nodes();
        Some(Box::new(params))
    }

    fn add(&mut self, id: NodeId, binding: Binding, row: Option<FillLayout>) {
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
        let has_flags = binding.uses.iter().any(|one| one.place == Place::Enabled);
        self.places.insert(id, node);
        self.nodes.push(ExecBound {
            id,
            counterpart: id,
            binding,
            row,
            spare_fill: row.zip(self.spare.as_ref()).map(|(row, spare)| spare_fill(row, spare)),
            is_enabled: true,
            is_stale: false,
            is_on: true,
            has_flags,
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

    /// The same parameters, by the keys of an executable. `is_enabled` tells whether a node is
    /// enabled there, by its key. `None` if a node has no key.
    pub(crate) fn with_keys(
        mut self: Box<Self>,
        key: impl Fn(NodeId) -> Option<NodeId>,
        is_enabled: impl Fn(NodeId) -> bool,
    ) -> Option<Box<Self>> {
        self.places.clear();
        for (place, bound) in (0..).zip(&mut self.nodes) {
            bound.id = key(bound.id)?;
            self.places.insert(bound.id, place);
            bound.is_enabled = is_enabled(bound.id);
            // The next launch enables it, if its parameters say so.
            if !bound.is_enabled && !bound.is_pending {
                (bound.is_pending, bound.is_stale) = (true, true);
                self.pending.push(place);
            }
        }
        Some(self)
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

    /// The fills that fill spare memory now. The driver knows them as enabled.
    pub(crate) fn spare_fills(&self) -> impl Iterator<Item = NodeId> {
        let fills = self.nodes.iter().filter(|bound| bound.spare_fill.is_some() && !bound.is_enabled);
        fills.map(|bound| bound.id)
    }

    /// Whether parameters have disabled a node.
    pub(crate) fn disables(&self, id: NodeId) -> bool {
        let place = self.places.get(&id).and_then(|place| self.nodes.get(*place as usize));
        place.is_some_and(|bound| !bound.is_enabled)
    }

    /// The values of all parameters.
    pub(crate) fn values(&self) -> &[ParamValue] {
        &self.values
    }

    /// The value of a parameter.
    pub(crate) fn value(&self, param: u32) -> Option<&ParamValue> {
        self.values.get(param as usize)
    }

    /// Whether nodes wait for an update.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        !self.changed.is_empty() || !self.pending.is_empty()
    }

    /// Sets a value.
    pub(crate) fn set(&mut self, param: u32, value: ParamValue) {
        let place = param as usize;
        let (Some(known), Some(before)) = (self.values.get_mut(place), self.before.get_mut(place)) else {
            return;
        };
        if known.is_same(&value) {
            return;
        }
        let replaced = core::mem::replace(known, value);
        match before {
            None => {
                *before = Some(replaced);
                self.changed.push(param);
            }
            // All nodes have the value already, unless some were updated.
            Some(had) if self.partly.is_empty() && had.is_same(known) => {
                *before = None;
                self.changed.retain(|changed| *changed != param);
            }
            Some(_) => {}
        }
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

    /// The nodes that wait for an update. The caller gives them back, by [`done`](Self::done) or
    /// [`failed`](Self::failed).
    pub(crate) fn take_pending(&mut self) -> PendingNodes {
        let always = self.pending.len();
        for place in 0..self.changed.len() {
            if let Some(&param) = self.changed.get(place) {
                self.touch(param as usize);
            }
        }
        PendingNodes { nodes: core::mem::take(&mut self.pending), always }
    }

    /// A node with the values of all parameters.
    pub(crate) fn node_mut(&mut self, place: u32) -> Option<(&mut ExecBound, &[ParamValue])> {
        Some((self.nodes.get_mut(place as usize)?, &self.values))
    }

    /// Notes that all nodes are up to date. Gives the owners that they no longer have.
    pub(crate) fn done(&mut self, mut pending: PendingNodes, replaced: &mut Vec<Owner>) {
        self.forget(&pending.nodes);
        pending.nodes.clear();
        self.pending = pending.nodes;
        for param in self.changed.drain(..) {
            let before = self.before.get_mut(param as usize).and_then(Option::take);
            replaced.extend(before.and_then(ParamValue::into_owner));
        }
        if !self.partly.is_empty() {
            replaced.extend(self.partly.drain(..).filter_map(ParamValue::into_owner));
        }
    }

    /// Notes that an update has failed, of some nodes after others or of none at all. The next
    /// launch repeats it, with the values of then.
    pub(crate) fn failed(&mut self, mut pending: PendingNodes, of_some: bool) {
        if of_some {
            self.keep_values();
        } else {
            // The values may become again what all nodes have.
            self.forget(pending.nodes.get(pending.always..).unwrap_or_default());
            pending.nodes.truncate(pending.always);
        }
        self.pending = pending.nodes;
    }

    fn forget(&mut self, nodes: &[u32]) {
        for &node in nodes {
            if let Some(bound) = self.nodes.get_mut(node as usize) {
                bound.is_pending = false;
            }
        }
    }

    /// Keeps the values of before, which some nodes still have and others do not. Nodes that are
    /// not up to date say so.
    fn keep_values(&mut self) {
        let before = self.changed.drain(..).filter_map(|param| self.before.get_mut(param as usize)?.take());
        self.partly.extend(before);
    }
}

impl ExecBound {
    /// Whether its parameters say that it is enabled.
    pub(crate) fn wants_enabled(&self, values: &[ParamValue]) -> bool {
        if !self.has_flags {
            return true;
        }
        let mut flags = self.binding.uses.iter().filter(|one| one.place == Place::Enabled);
        flags.all(|one| !matches!(values.get(one.param as usize), Some(ParamValue::Enabled(false))))
    }
}
