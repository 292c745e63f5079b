//! Placeholders: empty nodes in place of conditional nodes that the driver lacks, with bodies of
//! their own for the host to run.

use cuda_handles::GraphHandle;
use cuda_sys::CUgraphNodeType;

use crate::build::frontier::Frontier;
use crate::build::insertion::NewNode;
use crate::condition::ensure_conditionals;
use crate::error::{Error, LoopError, Result};
use crate::graph::node::Node;
use crate::node_kind::NodeKind;
use crate::state::AddedNode;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::ids::SubgraphId;
use crate::state::owners::Owners;
use crate::state::params::{ConditionSource, Conditional, ConditionalKind, NodeParams};
use crate::state::raw_params::blank;
use cuda_handles::Owner;
use cuda_sys::{CUgraphNode, CUgraphNodeParams};

impl Frontier<'_> {
    /// Whether a loop or branch needs a placeholder here: the driver lacks its node, or the graph
    /// is a body of a placeholder, in which conditions do not work.
    ///
    /// Refused in a graph that other code has: it would run the placeholder as the empty node that
    /// it is for the driver.
    pub(super) fn needs_placeholder(&self, class: ConditionalKind) -> Result<bool> {
        let lacks = ensure_conditionals(class, self.graph().context());
        let guard = self.graph().look()?;
        guard.ensure_one_context()?;
        if lacks.is_ok() {
            return Ok(guard.enclosing_placeholder(self.graph().subgraph()).is_some());
        }
        if guard.is_shared() { lacks.map(|()| true) } else { Ok(true) }
    }

    /// Adds the placeholder of a conditional node.
    pub(super) fn placeholder(&self, class: ConditionalKind, bodies: usize) -> Result<Node> {
        let (graph, kind) = (self.graph(), class.node_kind());
        // Created before the lock is taken, so that they are dropped after it if a call fails.
        let bodies = (0..bodies).map(|_| Ok(GraphHandle::create(graph.context())?));
        let bodies = bodies.collect::<Result<Vec<_>>>()?;
        let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY);
        let mut guard = graph.enter()?;
        // The graph may have been lent in the meantime.
        if guard.is_shared() {
            ensure_conditionals(class, graph.context())?;
        }
        let new = NewPlaceholder { subgraph: graph.subgraph(), class, bodies };
        let id = self.insert(&mut guard, new, &mut params)?;
        drop(guard);
        Ok(Node::new(graph.clone(), id, kind))
    }
}

/// The placeholder of a conditional node to be added, with its bodies.
struct NewPlaceholder {
    subgraph: SubgraphId,
    class: ConditionalKind,
    bodies: Vec<GraphHandle>,
}

impl NewNode for NewPlaceholder {
    type Found = ();

    fn kind(&self) -> NodeKind {
        self.class.node_kind()
    }

    fn finish(&mut self, _: &mut GraphGuard<'_>, _: CUgraphNode, _: &CUgraphNodeParams) -> Result<()> {
        Ok(())
    }

    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, (): ()) -> NodeId {
        let class = self.class;
        let node_params = |bodies| {
            let source = ConditionSource::Host;
            NodeParams::Conditional(Conditional { kind: class, source, control: None, bodies, default: None })
        };
        let id = guard.insert(self.subgraph, added, node_params(Box::default()), Owners::new());
        let bodies = self.bodies.into_iter().map(|body| guard.embed_own(body, id));
        let bodies: Box<[SubgraphId]> = bodies.collect();
        guard.register(&bodies);
        if let Some(inserted) = guard.record_mut(id) {
            inserted.node_params = node_params(bodies);
        }
        id
    }

    fn into_owners(self) -> Owners {
        self.bodies.into_iter().map(Owner::other).collect()
    }
}

impl GraphGuard<'_> {
    /// Whether there are placeholders, which only the host can run.
    pub(crate) fn has_placeholders(&self) -> bool {
        self.has_own_bodies()
    }

    /// Refuses a graph with placeholders, for uses that would run it as it is.
    pub(crate) fn ensure_no_placeholders(&self) -> Result<()> {
        // A placeholder within another one may stand for a node that the driver has.
        let lacking = self.records().find_map(|(id, record)| {
            if let NodeParams::Conditional(Conditional {
                kind: class, source: ConditionSource::Host, ..
            }) = &record.node_params
            {
                ensure_conditionals(*class, self.context()).err().map(|error| (id, error))
            } else {
                None
            }
        });
        match lacking {
            Some((id, Error::TooOld(old))) => {
                let (needs, found) = (old.feature.since(), old.found);
                Err(Error::Loop(LoopError::NeedsHost { node: self.name(id), needs, found }))
            }
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// Refuses a node with a condition in a body of a placeholder.
    pub(crate) fn ensure_no_placeholder_around(&self, subgraph: SubgraphId, kind: NodeKind) -> Result<()> {
        match self.enclosing_placeholder(subgraph) {
            Some(around) => Err(Error::Loop(LoopError::HostDecides { kind, node: self.name(around) })),
            None => Ok(()),
        }
    }
}
