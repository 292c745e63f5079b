//! Conditional nodes that the driver does not have: drawn as an empty node with graphs of their
//! own, for the host to decide.

use cuda_handles::GraphHandle;
use cuda_sys::CUgraphNodeType;

use crate::build::frontier::Frontier;
use crate::condition::ensure_conditionals;
use crate::error::{Error, Result};
use crate::graph::node::Node;
use crate::node_kind::NodeKind;
use crate::state::guard::GraphGuard;
use crate::state::ids::SubgraphId;
use crate::state::owners::Owners;
use crate::state::params::{ConditionSource, Conditional, ConditionalKind, NodeParams};
use crate::state::raw_params::blank;

impl Frontier<'_> {
    /// Whether a ready-made node of a class has to be a place holder here: the driver has none, or
    /// the graph is a body of a place holder, whose graph knows no conditions.
    ///
    /// Other code that has the graph would run a place holder as the nothing that it is for the
    /// driver: there it is refused.
    pub(super) fn needs_place_holder(&self, class: ConditionalKind) -> Result<bool> {
        let lacks = ensure_conditionals(class, self.graph().context());
        let guard = self.graph().look()?;
        if lacks.is_ok() {
            return Ok(guard.place_holder_around(self.graph().subgraph()).is_some());
        }
        if guard.is_shared() { lacks.map(|()| true) } else { Ok(true) }
    }

    /// Adds the place holder of a conditional node.
    pub(super) fn place_holder(&self, class: ConditionalKind, bodies: usize) -> Result<Node> {
        let (graph, kind) = (self.graph(), class.kind());
        // Before the lock, so that they are dropped after it where a call fails.
        let bodies = (0..bodies).map(|_| Ok(GraphHandle::create(graph.context())?));
        let bodies = bodies.collect::<Result<Vec<_>>>()?;
        let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY);
        let mut guard = graph.enter()?;
        // It may have been lent since it was asked for.
        if guard.is_shared() {
            ensure_conditionals(class, graph.context())?;
        }
        let raw = self.add_raw(&mut guard, kind, &mut params)?;
        let joined = self.join(&guard, raw);
        let stuck = guard.unless_undone(raw, joined)?;
        let record = |bodies| {
            let by = ConditionSource::Host;
            NodeParams::Conditional(Conditional { class, by, ready: None, bodies, default: None })
        };
        let id = guard.insert(graph.subgraph(), raw, record(Box::default()), Owners::new());
        let subgraphs: Box<[SubgraphId]> = bodies.into_iter().map(|body| guard.embed_own(body, id)).collect();
        guard.share(&subgraphs);
        if let Some(inserted) = guard.record_mut(id) {
            inserted.node_params = record(subgraphs);
        }
        if let Some(stuck) = stuck {
            return Err(stuck.told(&mut guard, id, self.comes_before(), None));
        }
        drop(guard);
        Ok(Node::new(graph.clone(), id, kind))
    }
}

impl GraphGuard<'_> {
    /// Whether there are nodes that only the host can make something of.
    pub(crate) fn has_place_holders(&self) -> bool {
        self.counts_place_holders()
    }

    /// Refuses to give a graph with place holders to anybody who would run it as it is.
    pub(crate) fn ensure_no_place_holders(&self) -> Result<()> {
        // Those in a body of another one may be of a class that the driver has.
        let lacking = self.records().find_map(|(id, record)| match &record.node_params {
            NodeParams::Conditional(Conditional { class, by: ConditionSource::Host, .. }) => {
                ensure_conditionals(*class, self.context()).err().map(|error| (id, error))
            }
            _ => None,
        });
        match lacking {
            Some((id, Error::TooOld { needs, found, .. })) => {
                Err(Error::NeedsHost { node: self.name(id), needs, found })
            }
            _ => Ok(()),
        }
    }

    /// Refuses a node that goes by a condition in a body of a place holder.
    pub(crate) fn ensure_no_place_holder_around(&self, subgraph: SubgraphId, kind: NodeKind) -> Result<()> {
        match self.place_holder_around(subgraph) {
            Some(around) => Err(Error::HostDecides { kind, node: self.name(around) }),
            None => Ok(()),
        }
    }
}
