//! Nodes that run a graph of their own.

use cuda_handles::WrongContext;
use cuda_handles::clones::{self, Alone};
use cuda_sys::{
    CUgraph, CUgraphChildGraphNodeOwnership, CUgraphNode, CUgraphNodeParams, CUgraphNodeType, Call,
};

use crate::build::frontier::Frontier;
use crate::build::insertion::{NewNode, PlainNode};
use crate::clone::snapshot::{CloneMap, GraphSnapshot};
use crate::error::wrong_context::ensure;
use crate::error::{Error, Result};
use crate::exec::instantiate::unless_ended;
use crate::graph::Graph;
use crate::graph::node::{Node, typed};
use crate::node_kind::NodeKind;
use crate::state::guard::{GraphGuard, GuardPair};
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;
use crate::state::{AddedNode, MovedRoot, TakenNodes};

typed! {
    /// A node that runs a graph of its own, the [embedded](Self::embedded) one.
    ChildGraphNode, ChildGraph
}

impl ChildGraphNode {
    /// The graph in the node. It is used as any other: its nodes are listed, added, changed and
    /// removed there.
    ///
    /// It goes with its node: once that is removed, or has [another graph](Self::set_graph), using
    /// it is [`Error::GraphRemoved`]. It cannot be instantiated, moved or embedded by itself; a
    /// [clone](Graph::clone_graph) of it can.
    ///
    /// No driver call.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphChildGraphNodeGetGraph")]
    pub fn embedded(&self) -> Result<Graph> {
        let subgraph = self.node_params()?.embedded();
        // The handle is made for rows of its kind only, and a row keeps its kind.
        subgraph.map(|subgraph| self.graph().at(subgraph)).ok_or_else(|| self.removed())
    }

    /// Puts a clone of `graph`, as it is now, in place of the embedded graph, which may have other
    /// nodes. What that one used is let go of; executables made before keep what they were.
    ///
    /// Stands on `cuGraphNodeSetParams`, CUDA 12.2, and on what [`Frontier::child`] asks about the
    /// clone.
    ///
    /// # Errors
    /// As for [`Frontier::child`]; `graph` lies in the embedded one ([`Error::ReplacesItself`]);
    /// the node's own graph has memory nodes, or one moved into a node of it has
    /// ([`Error::KeepsAll`]). The node is as it was then; but if the driver does not tell the nodes of
    /// the new graph, the graph is [broken](Error::Broken).
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set_graph(&self, graph: &Graph) -> Result<()> {
        self.getting(ensure_child(self.graph(), graph))?;
        // What the old graph used comes out of the locks before it is dropped.
        self.replace_graph(graph).map(drop)
    }

    fn replace_graph(&self, graph: &Graph) -> Result<(TakenNodes, Vec<cuda_handles::Owner>, Owners)> {
        let mut two = self.graph().enter_with(graph)?;
        let record = two.first.record(self.id()).ok_or_else(|| self.removed())?;
        let (raw, name, before) =
            (record.raw.0, record.display_name(self.id()), record.node_params.embedded());
        two.first.retain_if_adopted()?;
        let copied = copy_for(&mut two, self.graph().subgraph(), before, &name)?;
        two.first.ensure_may_hold_all(self.graph().subgraph(), &copied)?;
        two.first.ensure_may_lose(self.id(), "graph")?;
        two.first.reserve_many(self.graph().subgraph(), copied.len());
        let mut params = params(two.second_raw()?, CLONED);
        let result = {
            let _alone = clones::alone(self.graph().context())?;
            // SAFETY: both graphs are live and locked, as their tables say, and neither lies in the
            // other; so is the node, and its parameters are complete.
            unsafe { two.first.driver().cuGraphNodeSetParams(raw, &raw mut params) }
        };
        two.first.answer(Call::cuGraphNodeSetParams, result)?;
        // The old graph is gone, whatever comes now.
        let guard = &mut two.first;
        let (taken, kept) = before.map(|subgraph| guard.take_inside(subgraph)).unwrap_or_default();
        match read(guard, &copied, raw) {
            Ok(clone_map) => {
                let mut owners = Owners::new();
                guard.swap_owners(self.id(), &mut owners);
                enter(guard, self.id(), copied, &clone_map, false);
                Ok((taken, kept, owners))
            }
            // The old graph is gone, and the new one is not known.
            Err(cause) => {
                let undo = Error::NotRestored { node: name.into() };
                guard.lose_taken(taken, kept);
                Err(guard.broken(cause, undo, copied.into_owners()))
            }
        }
    }
}

impl Graph {
    /// The nodes that have a graph of their own in them, in the order of their creation.
    ///
    /// Stands on `cuGraphGetNodes`, CUDA 10.0.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuGraphGetNodes")]
    pub fn children(&self) -> Result<Vec<ChildGraphNode>> {
        Ok(self.nodes()?.into_iter().filter_map(|node| ChildGraphNode::try_from(node).ok()).collect())
    }

    /// The node that the graph is embedded in; `None` for a graph of its own. No driver call.
    ///
    /// # Errors
    /// The graph is gone with its node, or was moved.
    pub fn parent(&self) -> Result<Option<Node>> {
        let guard = self.look()?;
        if self.subgraph().is_root() {
            return Ok(None);
        }
        let node = guard.embedded(self.subgraph()).ok_or(Error::GraphRemoved)?.node;
        let record = guard.record(node).ok_or(Error::GraphRemoved)?;
        let (subgraph, kind) = (record.within, record.node_params.kind());
        drop(guard);
        Ok(Some(Node::new(self.at(subgraph), node, kind)))
    }
}

fn ensure_child(graph: &Graph, child: &Graph) -> Result<()> {
    let (context, of) = (graph.context(), child.context());
    ensure(context, of, || WrongContext::new("the graph to embed", of, "the graph that embeds it", context))
}

impl Frontier<'_> {
    /// Adds a node that runs a clone of `graph`, as it is now. Names, and what the nodes use, are
    /// those of the original; its nodes are found in the [embedded graph](ChildGraphNode::embedded)
    /// by [`find_clone_of`](Graph::find_clone_of).
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2, and asks the driver for the clone's nodes:
    /// `cuGraphGetNodes` for each graph and `cuGraphChildGraphNodeGetGraph` for each embedded one.
    ///
    /// # Errors
    /// The frontier is in `graph` or in a graph embedded in it ([`Error::EmbedsItself`]): the
    /// driver would crash. A graph of another context, or one that is itself embedded in a node
    /// ([`Error::Embedded`]), which the driver refuses: embed a [clone](Graph::clone_graph) of it.
    /// A node of the frontier was removed; or what the driver answers. The graph is as it was then,
    /// or [broken](Error::Broken).
    #[doc(alias = "cuGraphAddChildGraphNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn child(&self, graph: &Graph) -> Result<ChildGraphNode> {
        ensure_child(self.graph(), graph)?;
        let mut two = self.graph().enter_with(graph)?;
        let copied = copy_for(&mut two, self.graph().subgraph(), None, "")?;
        two.first.ensure_may_hold_all(self.graph().subgraph(), &copied)?;
        let mut params = params(two.second_raw()?, CLONED);
        let subgraph = self.graph().subgraph();
        two.first.reserve_many(subgraph, copied.len() + 1);
        let alone = Some(clones::alone(self.graph().context())?);
        let id = self.insert(&mut two.first, NewClone { subgraph, copied, alone }, &mut params)?;
        drop(two);
        Ok(ChildGraphNode::wrap(Node::new(self.graph().clone(), id, NodeKind::ChildGraph)))
    }

    /// Adds a node that runs `graph` itself, which becomes the [embedded](ChildGraphNode::embedded)
    /// one.
    ///
    /// Other handles of it, and of its nodes and embedded graphs, lead nowhere from then on
    /// ([`Error::GraphMoved`]); its nodes are found in the embedded graph by
    /// [`find_clone_of`](Graph::find_clone_of). Executables made of it before live on. A graph that
    /// was moved cannot be moved or embedded again, but cloned.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.9.
    ///
    /// # Errors
    /// The frontier is in `graph` or in a graph embedded in it ([`Error::EmbedsItself`]); a graph
    /// that is embedded in a node ([`Error::Embedded`]) or belongs to other code
    /// ([`Error::NotOwned`]); one with memory nodes that has an executable
    /// ([`Error::OneExecutable`]); a graph of another context; a node of the frontier was removed;
    /// an older driver ([`Error::CannotMove`]); or what the driver answers. `graph` is as it was
    /// then, if there is another handle of it.
    #[doc(alias = "CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn child_moved(&self, graph: Graph) -> Result<ChildGraphNode> {
        ensure_child(self.graph(), &graph)?;
        let found = graph.context().driver().version();
        if found < Error::MOVES {
            return Err(Error::CannotMove { found });
        }
        unless_ended(&graph, || self.take_in(&graph))
    }

    fn take_in(&self, graph: &Graph) -> Result<ChildGraphNode> {
        // What is left of the table comes out of the locks before it is dropped.
        let left;
        let mut two = self.graph().enter_with(graph)?;
        if two.are_beside() && graph.subgraph().is_root() {
            return Err(Error::EmbedsItself);
        }
        if !graph.subgraph().is_root() {
            return Err(Error::Embedded { what: "moved into another one" });
        }
        if !graph.handle().is_owned() {
            return Err(Error::NotOwned);
        }
        if let Some(root) = self.root_to_take_over(&mut two)? {
            return self.take_over(two, root, graph);
        }
        let copied = { two.second().0.copy(SubgraphId::ROOT)? };
        two.second().0.ensure_no_executable()?;
        two.first.ensure_may_hold_all(self.graph().subgraph(), &copied)?;
        let clone_map = copied.themselves();
        let mut params = params(two.second_raw()?, MOVED);
        two.first.reserve_many(self.graph().subgraph(), copied.len() + 1);
        let id = self.insert_moved(&mut two.first, &mut params)?;
        let runs = two.second().0.last_runs.clone();
        two.first.last_runs.take_in(&runs);
        left = two.second().0.leave();
        copied.let_memory_belong_to(two.first.memory_number());
        enter(&mut two.first, id, copied, &clone_map, true);
        // Last, and under both locks: whoever does not find the handle any more by the raw value
        // finds the embedded graph, and waits for it. SAFETY: as just said.
        unsafe { graph.handle().disown() };
        drop(two);
        drop(left);
        Ok(ChildGraphNode::wrap(Node::new(self.graph().clone(), id, NodeKind::ChildGraph)))
    }

    /// The root of the second graph, if its table is to become that of the first.
    fn root_to_take_over(&self, two: &mut GuardPair<'_>) -> Result<Option<MovedRoot>> {
        let (first, Some(moved)) = two.both() else { return Ok(None) };
        if !first.is_to_take_over(moved, self.graph().subgraph()) {
            return Ok(None);
        }
        moved.ensure_no_executable()?;
        let raws = moved.raw_nodes()?;
        let records = raws.into_iter().map(|raw| moved.index(raw)).collect::<Result<Vec<_>>>()?;
        let (raw, hierarchy, memory) = (moved.raw(), moved.number(), moved.memory_number());
        Ok(Some(MovedRoot { raw, hierarchy, memory, records }))
    }

    /// [`take_in`](Self::take_in) for a graph with more nodes than this hierarchy has.
    fn take_over(&self, mut two: GuardPair<'_>, root: MovedRoot, graph: &Graph) -> Result<ChildGraphNode> {
        let mut params = params(root.raw, MOVED);
        let id = self.insert_moved(&mut two.first, &mut params)?;
        let moved = two.second().0.leave();
        two.first.last_runs.take_in(&moved.last_runs);
        let (_, subgraphs, left) = two.first.take_over(moved, root, id);
        two.first.share_anew(&subgraphs);
        // SAFETY: as in `take_in`.
        unsafe { graph.handle().disown() };
        drop(two);
        drop(left);
        Ok(ChildGraphNode::wrap(Node::new(self.graph().clone(), id, NodeKind::ChildGraph)))
    }

    /// Adds the node of a graph that is moved into it. The graph's subgraph is entered afterwards.
    fn insert_moved(&self, guard: &mut GraphGuard<'_>, params: &mut CUgraphNodeParams) -> Result<NodeId> {
        let node_params = NodeParams::Child { graph: SubgraphId::ROOT };
        let new = PlainNode { subgraph: self.graph().subgraph(), node_params, owners: Owners::new() };
        let _alone = clones::alone(self.graph().context())?;
        self.insert(guard, new, params)
    }
}

/// A child graph node to be added with a clone of a graph.
struct NewClone {
    subgraph: SubgraphId,
    copied: GraphSnapshot,
    /// Held until the driver has made the clone.
    alone: Option<Alone>,
}

impl NewNode for NewClone {
    type Found = CloneMap;

    fn kind(&self) -> NodeKind {
        NodeKind::ChildGraph
    }

    fn finish(
        &mut self,
        guard: &mut GraphGuard<'_>,
        raw: CUgraphNode,
        _: &CUgraphNodeParams,
    ) -> Result<CloneMap> {
        // To destroy the node, should anything fail from here on, it is taken again.
        drop(self.alone.take());
        read(guard, &self.copied, raw)
    }

    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, clone_map: CloneMap) -> NodeId {
        // The subgraph is known once the record is there.
        let node_params = NodeParams::Child { graph: SubgraphId::ROOT };
        let id = guard.insert(self.subgraph, added, node_params, Owners::new());
        enter(guard, id, self.copied, &clone_map, false);
        id
    }

    fn into_owners(self) -> Owners {
        self.copied.into_owners()
    }
}

const CLONED: CUgraphChildGraphNodeOwnership =
    CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
const MOVED: CUgraphChildGraphNodeOwnership =
    CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;

/// Copies what is known of the second graph, if a clone of it can be put into the graph at `into`,
/// in place of the one at `instead`.
fn copy_for(
    two: &mut GuardPair<'_>,
    into: SubgraphId,
    instead: Option<SubgraphId>,
    node: &str,
) -> Result<GraphSnapshot> {
    let beside = two.are_beside();
    let (source, subgraph) = two.second();
    if beside && source.outwards(into).any(|outer| outer == subgraph) {
        return Err(Error::EmbedsItself);
    }
    if beside && source.outwards(subgraph).any(|outer| Some(outer) == instead) {
        return Err(Error::ReplacesItself { node: node.into() });
    }
    if !subgraph.is_root() {
        return Err(Error::Embedded { what: "embedded in another one" });
    }
    let copied = source.copy(subgraph)?;
    copied.ensure_without_memory()?;
    Ok(copied)
}

/// The nodes of the graph that the driver has put into a node.
fn read(guard: &GraphGuard<'_>, copied: &GraphSnapshot, node: CUgraphNode) -> Result<CloneMap> {
    guard.pair(copied, guard.raw_embedded(node)?)
}

/// Enters the graph that is in a node now.
fn enter(guard: &mut GraphGuard<'_>, node: NodeId, copied: GraphSnapshot, clone_map: &CloneMap, moved: bool) {
    let inner = guard.embed(clone_map.graph(), node);
    if let Some(record) = guard.record_mut(node) {
        record.node_params.set_embedded(inner);
    }
    let subgraphs = guard.paste(copied, clone_map, inner, moved);
    guard.share(&subgraphs);
}

/// The driver's form of a child graph node.
fn params(graph: CUgraph, ownership: CUgraphChildGraphNodeOwnership) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH);
    params.__bindgen_anon_1.graph.graph = graph;
    params.__bindgen_anon_1.graph.ownership = ownership;
    params
}
