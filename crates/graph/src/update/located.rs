//! Finding a node of an executable, under the locks of its graphs.

use cuda_sys::CUgraphNode;

use crate::error::{Error, Result, UpdateError};
use crate::exec::GraphExec;
use crate::exec::counterparts::Counterparts;
use crate::exec::node_updates::{Latest, LatestGraph, NodeUpdates};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::node_name::NodeName;
use crate::state::guard::{GraphGuard, GuardPair};
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;
use crate::update::pairing::pair;
use crate::update::shape::shape;

/// The graphs whose nodes stand for the nodes of an executable.
pub(super) enum Graphs<'n> {
    /// The graph that the executable was made of.
    One(&'n Graph),
    /// The same, and the graph of the last whole update.
    Two { keys: Graph, latest: Graph },
}

/// A node of an executable, under the locks of its graphs.
pub(super) struct Located<'g> {
    guards: Guards<'g>,
    /// The node of the graph that the executable was made of, by which the driver knows it.
    pub(super) key: NodeId,
    /// The node of the graph that its parameters are of.
    pub(super) counterpart: NodeId,
    /// Whether the caller gave the counterpart, if that is another node.
    is_counterpart: bool,
}

enum Guards<'g> {
    One(GraphGuard<'g>),
    /// Ours is the graph that the executable was made of.
    Two(GuardPair<'g>),
}

impl GraphExec {
    /// The graphs to be locked for a node that can be updated.
    pub(super) fn graphs_of<'n>(&self, node: &'n Node) -> Result<Graphs<'n>> {
        self.live()?;
        if self.owners.is_lent() {
            return Err(UpdateError::Lent.into());
        }
        let unpaired = |why| Err(UpdateError::Unpaired { why }.into());
        match self.updates.latest() {
            Latest::Own => Ok(Graphs::One(node.graph())),
            Latest::Other(latest) => match (self.source.graph(), latest.source.graph()) {
                (Some(keys), Some(latest)) => Ok(Graphs::Two { keys, latest }),
                _ => unpaired("a graph of other code, from which it was made or updated, has no handle left"),
            },
            Latest::OwnChanged => {
                unpaired("nodes or edges of its graph were changed before it was updated from that")
            }
        }
    }
}

impl<'n> Graphs<'n> {
    /// Finds a node of an executable. It is one of the graph that the executable was made of, when
    /// it was made, or of the graph of the last whole update, when that was made.
    pub(super) fn locate<'g>(&'g self, exec: &GraphExec, node: &'g Node) -> Result<Located<'g>> {
        match self {
            Self::One(graph) => {
                let guard = graph.enter()?;
                ensure_in(&guard, node)?;
                if !(exec.source.is_of(guard.hierarchy()) && exec.updates.has(node.id())) {
                    return Err(not_in_executable(&guard, node));
                }
                let (key, counterpart) = (node.id(), node.id());
                Ok(Located { guards: Guards::One(guard), key, counterpart, is_counterpart: false })
            }
            Self::Two { keys, latest } => {
                // Otherwise the node is of neither hierarchy, and not under their locks.
                let is_key = node.graph().is_in_same_hierarchy(keys);
                if !is_key && !node.graph().is_in_same_hierarchy(latest) {
                    let guard = node.graph().enter()?;
                    ensure_in(&guard, node)?;
                    return Err(not_in_executable(&guard, node));
                }
                let guards = keys.enter_with(latest)?;
                locate_by_counterparts(guards, &exec.updates, node, is_key)
            }
        }
    }
}

fn locate_by_counterparts<'g>(
    mut guards: GuardPair<'g>,
    updates: &NodeUpdates,
    node: &Node,
    is_key: bool,
) -> Result<Located<'g>> {
    match is_key {
        true => ensure_in(&guards.ours, node)?,
        false => ensure_in(guards.other().0, node)?,
    }
    let keys_are_as_they_were = updates.has_keys_as_they_were(&guards.ours);
    let id = node.id();
    let Latest::Other(latest) = updates.latest() else { return Err(not_in_executable(&guards.ours, node)) };
    let found = match latest.counterparts.get() {
        Some(known) => known,
        None => {
            let found = counterparts(&mut guards, latest, keys_are_as_they_were)?;
            latest.counterparts.get_or_init(|| found)
        }
    };
    let pair = match (found, is_key) {
        (Counterparts::Unknown(why), _) => return Err(UpdateError::Unpaired { why }.into()),
        (Counterparts::Known { of_keys, .. }, true) => of_keys.get(&id).map(|other| (id, *other)),
        (Counterparts::Known { keys, .. }, false) => keys.get(&id).map(|key| (*key, id)),
    };
    let Some((key, counterpart)) = pair else {
        let guard = if is_key { &guards.ours } else { &*guards.other().0 };
        return Err(not_in_executable(guard, node));
    };
    Ok(Located { guards: Guards::Two(guards), key, counterpart, is_counterpart: !is_key })
}

/// The counterparts in two graphs.
fn counterparts(
    guards: &mut GuardPair<'_>,
    latest: &LatestGraph,
    keys_are_as_they_were: bool,
) -> Result<Counterparts> {
    if !keys_are_as_they_were || !latest.is_as_it_was(guards.other_guard()) {
        let why = "nodes or edges of the graphs from which it was made and updated were changed since";
        return Ok(Counterparts::Unknown(why));
    }
    let (keys, new) = (shape(&mut guards.ours)?, shape(guards.other().0)?);
    let found = pair(&keys, &new);
    Ok(match found.differences.is_empty() {
        true => found.pairs.into_iter().collect(),
        false => Counterparts::Unknown("the driver has paired the nodes in a way that is not known"),
    })
}

/// Refuses a node that was removed.
fn ensure_in(guard: &GraphGuard<'_>, node: &Node) -> Result<()> {
    guard.record(node.id()).map(drop).ok_or_else(|| guard.removed(node.id()))
}

fn not_in_executable(guard: &GraphGuard<'_>, node: &Node) -> Error {
    UpdateError::NotInExecutable { node: guard.name(node.id()) }.into()
}

impl<'g> Located<'g> {
    /// The graph that the executable was made of.
    pub(super) fn keys(&self) -> &GraphGuard<'g> {
        match &self.guards {
            Guards::One(guard) => guard,
            Guards::Two(guards) => &guards.ours,
        }
    }

    /// The graph that the parameters are of.
    pub(super) fn latest(&self) -> &GraphGuard<'g> {
        match &self.guards {
            Guards::One(guard) => guard,
            Guards::Two(guards) => guards.other_guard(),
        }
    }

    /// The parameters of the node in the executable; `None` if they are not known.
    pub(super) fn params<'s>(&'s self, updates: &'s NodeUpdates) -> Option<&'s NodeParams> {
        updates.params(self.latest(), self.key, self.counterpart)
    }

    /// The driver's node.
    pub(super) fn raw_key(&self) -> Result<CUgraphNode> {
        self.keys().raw_of(self.key)
    }

    /// Whether the node may decide about a condition, a loop or a branch.
    pub(super) fn may_decide(&self, updates: &NodeUpdates) -> bool {
        let graph = self.latest();
        let is_known = self.params(updates).is_some() || !graph.has_conditionals();
        !is_known || graph.decides(self.counterpart)
    }

    /// The name of the node that the caller has given.
    pub(super) fn name(&self) -> NodeName {
        match self.is_counterpart {
            true => self.latest().name(self.counterpart),
            false => self.keys().name(self.key),
        }
    }
}
