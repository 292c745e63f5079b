//! Finding a node of an executable, under the locks of its graphs.

use crate::error::{Error, Result, UpdateError};
use crate::exec::GraphExec;
use crate::exec::counterparts::Counterparts;
use crate::exec::node_updates::{Latest, NodeUpdates};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::guard::{GraphGuard, GuardPair};
use crate::state::ids::{NodeId, SubgraphId};
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
        self.ensure_not_lent()?;
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

    /// The key of a node, and the graph that was made an executable. The caller locks that graph
    /// again, together with another one.
    pub(super) fn key_of(&self, node: &Node) -> Result<(Graph, NodeId)> {
        let graphs = self.graphs_of(node)?;
        let key = graphs.locate(self, node)?.key;
        let keys = match graphs {
            Graphs::One(graph) => graph.at(SubgraphId::ROOT),
            Graphs::Two { keys, .. } => keys,
        };
        Ok((keys, key))
    }
}

impl Graphs<'_> {
    /// Finds a node of an executable that gets no values from graph parameters, to be updated.
    pub(super) fn locate<'g>(&'g self, exec: &GraphExec, node: &'g Node) -> Result<Located<'g>> {
        let found = self.locate_any(exec, node)?;
        exec.ensure_unbound(found.keys(), found.key)?;
        Ok(found)
    }

    /// Finds a node of an executable: one of the graph that the executable was made of, when it was
    /// made, or of the graph of the last whole update, when that was made.
    pub(super) fn locate_any<'g>(&'g self, exec: &GraphExec, node: &'g Node) -> Result<Located<'g>> {
        match self {
            Self::One(graph) => locate_key(graph.enter()?, exec, node),
            Self::Two { keys, latest } => {
                let is_key = node.graph().is_in_same_hierarchy(keys);
                if !is_key && !node.graph().is_in_same_hierarchy(latest) {
                    // It is under neither lock.
                    return Err(not_in_executable(&node.graph().enter()?, node));
                }
                locate_pair(keys.enter_with(latest)?, &exec.updates, node, is_key)
            }
        }
    }
}

fn locate_key<'g>(guard: GraphGuard<'g>, exec: &GraphExec, node: &Node) -> Result<Located<'g>> {
    let key = node.id();
    if guard.record(key).is_none() || !exec.source.is_of(guard.hierarchy()) || !exec.updates.has(key) {
        return Err(not_in_executable(&guard, node));
    }
    Ok(Located { guards: Guards::One(guard), key, counterpart: key, is_counterpart: false })
}

fn locate_pair<'g>(
    mut guards: GuardPair<'g>,
    updates: &NodeUpdates,
    node: &Node,
    is_key: bool,
) -> Result<Located<'g>> {
    let id = node.id();
    let known = match updates.latest() {
        Latest::Other(latest) => match latest.counterparts.get() {
            Some(known) => Some(known),
            None => {
                let is_as_it_was = latest.is_as_it_was(guards.other_guard());
                let found = counterparts(&mut guards, updates, is_as_it_was)?;
                Some(latest.counterparts.get_or_init(|| found))
            }
        },
        Latest::Own | Latest::OwnChanged => None,
    };
    if let Some(Counterparts::Unknown(why)) = known {
        return Err(UpdateError::Unpaired { why }.into());
    }
    let pair = known.and_then(|known| match is_key {
        true => Some((id, known.of_key(id)?)),
        false => Some((known.key(id)?, id)),
    });
    let guard = if is_key { &guards.ours } else { guards.other_guard() };
    match pair {
        Some((key, counterpart)) if guard.record(id).is_some() => {
            Ok(Located { guards: Guards::Two(guards), key, counterpart, is_counterpart: !is_key })
        }
        Some(_) | None => Err(not_in_executable(guard, node)),
    }
}

/// The counterparts of the keys in another graph. `is_as_it_was` says that it has the nodes and
/// edges that the executable gets or has got.
pub(super) fn counterparts(
    guards: &mut GuardPair<'_>,
    updates: &NodeUpdates,
    is_as_it_was: bool,
) -> Result<Counterparts> {
    if !is_as_it_was || !updates.has_keys_as_they_were(&guards.ours) {
        let why = "nodes or edges of a graph from which it was made or updated were changed since";
        return Ok(Counterparts::Unknown(why));
    }
    let (keys, new) = (shape(&mut guards.ours)?, shape(guards.other().0)?);
    let found = pair(&keys, &new);
    Ok(match found.differences.is_empty() {
        true => found.pairs.into_iter().collect(),
        false => Counterparts::Unknown("the driver has paired the nodes in a way that is not known"),
    })
}

/// The error of a node that the executable does not have, or that was removed.
#[cold]
fn not_in_executable(guard: &GraphGuard<'_>, node: &Node) -> Error {
    match guard.record(node.id()) {
        Some(_) => UpdateError::NotInExecutable { node: guard.name(node.id()) }.into(),
        None => guard.removed(node.id()),
    }
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

    /// Whether source and destination of a copy node have a context in the executable, as far as
    /// that is known. No update changes it.
    pub(super) fn contexts_of_copy(&self, updates: &NodeUpdates) -> [Option<bool>; 2] {
        match updates.unchanged(self.latest(), self.counterpart) {
            Some(_) if !updates.is_replaced(self.key) => self.latest().contexts_of_copy(self.counterpart),
            _ => [None; 2],
        }
    }

    /// The node that the caller has given, for errors.
    pub(super) fn named(&self) -> (&GraphGuard<'g>, NodeId) {
        match self.is_counterpart {
            true => (self.latest(), self.counterpart),
            false => (self.keys(), self.key),
        }
    }
}
