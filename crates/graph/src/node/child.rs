//! Child graph nodes: run a graph that is embedded in a node.

use cuda_handles::WrongContext;
use cuda_handles::clones::Alone;
use cuda_handles::internal::alone_in_order;
use cuda_sys::{
    CUgraph, CUgraphChildGraphNodeOwnership, CUgraphNode, CUgraphNodeParams, CUgraphNodeType, Call, Feature,
};

use crate::build::frontier::Frontier;
use crate::build::insertion::{NewNode, PlainNode};
use crate::clone::snapshot::{CloneMap, GraphSnapshot};
use crate::error::wrong_context::{Spans, ensure};
use crate::error::{EmbedError, Error, NodeError, Result};
use crate::exec::destroy::after_deferred;
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
    /// A node that runs a graph, its [embedded graph](Self::embedded).
    ///
    /// The embedded graph belongs to the node: a clone made when the node was added
    /// ([`Frontier::child`]), or a graph moved into the node ([`Frontier::child_moved`]). Its nodes
    /// can be listed, added, changed and removed like those of any other graph.
    #[doc(alias = "CUDA_CHILD_GRAPH_NODE_PARAMS")]
    #[doc(alias = "cudaChildGraphNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeGraph")]
    ChildGraphNode, ChildGraph
}

impl ChildGraphNode {
    /// The graph that the node runs. Changes to it affect executables made afterwards.
    ///
    /// The embedded graph ends with its node: after the node was removed or [got another
    /// graph](Self::set_graph), using it returns [`NodeError::GraphRemoved`]. It cannot be
    /// instantiated, moved or embedded; a [clone](Graph::clone_graph) of it can.
    ///
    /// Makes no driver call.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    #[doc(alias = "cuGraphChildGraphNodeGetGraph")]
    #[doc(alias = "cudaGraphChildGraphNodeGetGraph")]
    pub fn embedded(&self) -> Result<Graph> {
        let subgraph = self.node_params()?.embedded();
        // A handle is made only for a record of its kind, and a record keeps its kind.
        subgraph.map(|subgraph| self.graph().at(subgraph)).ok_or_else(|| self.removed())
    }

    /// Replaces the embedded graph with a clone of `graph`.
    ///
    /// The clone may have other nodes than the old embedded graph, which is destroyed with
    /// everything that only it kept alive. Existing executables keep the old graph and its owners.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2), and reads the nodes of the clone as
    /// [`Frontier::child`] does.
    ///
    /// # Errors
    /// - The errors of [`Frontier::child`].
    /// - [`EmbedError::ReplacesItself`], if `graph` is the embedded graph or lies in it.
    /// - [`MemoryError::KeepsAll`](crate::MemoryError::KeepsAll), if the graph of the node has
    ///   memory nodes, or a graph moved into one of its nodes has.
    /// - [`Error::Broken`], if the driver does not list the nodes of the clone after the call.
    ///
    /// The node is unchanged, except after [`Error::Broken`].
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set_graph(&self, graph: &Graph) -> Result<()> {
        self.getting(ensure_child(self.graph(), graph))?;
        // The owners of the old graph are dropped after the locks.
        self.replace_graph(graph).map(drop)
    }

    fn replace_graph(&self, graph: &Graph) -> Result<(TakenNodes, Vec<cuda_handles::Owner>, Owners)> {
        let mut guards = self.graph().enter_with(graph)?;
        let record = guards.ours.record(self.id()).ok_or_else(|| self.removed())?;
        let (raw, name, before) =
            (record.raw.0, record.display_name(self.id()), record.node_params.embedded());
        guards.ours.retain_if_adopted()?;
        let snapshot = copy_for(&mut guards, self.graph().subgraph(), before, &name)?;
        guards.ours.ensure_may_hold_all(self.graph().subgraph(), &snapshot)?;
        guards.ours.ensure_may_lose(self.id(), "graph")?;
        guards.ours.reserve_many(self.graph().subgraph(), snapshot.len());
        let mut params = params(guards.other_raw()?, CLONED);
        let result = {
            let _alone = alone_in_order(self.graph().context())?;
            // SAFETY: both graphs and the node are live, as their states say, and locked. Neither
            // graph lies in the other, and the parameters are complete.
            unsafe { guards.ours.driver().cuGraphNodeSetParams(raw, &raw mut params) }
        };
        guards.ours.answer(Call::cuGraphNodeSetParams, result)?;
        // From here on the driver has no old graph.
        let guard = &mut guards.ours;
        let (taken, kept) = before.map(|subgraph| guard.take_contents(subgraph)).unwrap_or_default();
        match read(guard, &snapshot, raw) {
            Ok(clone_map) => {
                let mut owners = Owners::new();
                guard.swap_owners(self.id(), &mut owners);
                guard.changes.note(self.id());
                enter(guard, self.id(), snapshot, &clone_map, false);
                Ok((taken, kept, owners))
            }
            // The driver has the new graph, but its nodes are unknown.
            Err(cause) => {
                let undo = Error::Node(NodeError::NotRestored { node: name.into() });
                guard.drop_taken_deferred(taken, kept);
                Err(guard.broken(cause, undo, snapshot.into_owners()))
            }
        }
    }
}

impl Graph {
    /// The child graph nodes of the graph, in the order of their creation.
    ///
    /// Calls `cuGraphGetNodes` (CUDA 10.0).
    ///
    /// # Errors
    /// [`Error::Handles`], if the driver reports an error.
    #[doc(alias = "cuGraphGetNodes")]
    #[doc(alias = "cudaGraphGetNodes")]
    pub fn children(&self) -> Result<Vec<ChildGraphNode>> {
        Ok(self.nodes()?.into_iter().filter_map(|node| ChildGraphNode::try_from(node).ok()).collect())
    }

    /// The node that the graph is embedded in; `None` for a root graph. Makes no driver call.
    ///
    /// # Errors
    /// - [`NodeError::GraphRemoved`], if the node was removed.
    /// - [`NodeError::GraphMoved`], if the root graph was moved into a node.
    pub fn parent(&self) -> Result<Option<Node>> {
        let guard = self.look()?;
        if self.subgraph().is_root() {
            return Ok(None);
        }
        let node = guard.embedded(self.subgraph()).ok_or(Error::Node(NodeError::GraphRemoved))?.node;
        let record = guard.record(node).ok_or(Error::Node(NodeError::GraphRemoved))?;
        let (subgraph, kind) = (record.within, record.node_params.kind());
        drop(guard);
        Ok(Some(Node::new(self.at(subgraph), node, kind)))
    }
}

pub(crate) fn ensure_child(graph: &Graph, child: &Graph) -> Result<()> {
    let Some(of) = graph.missing_of(child) else { return Ok(()) };
    let wrong = || WrongContext::new("the graph to embed", of, "the graph that embeds it", graph.context());
    ensure(graph, of, wrong)
}

impl Frontier<'_> {
    /// Adds a node that runs a clone of `graph`.
    ///
    /// The clone has the names of the original's nodes and keeps the same memory, kernels and other
    /// owners alive. Later changes of `graph` do not affect it.
    /// [`find_clone_of`](Graph::find_clone_of) finds the clone of a node in the [embedded
    /// graph](ChildGraphNode::embedded):
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Node, Result};
    /// # fn example(graph: &Graph, step: &Graph, node: &Node) -> Result<()> {
    /// let first = graph.root().child(step)?;
    /// let second = first.then().child(step)?;
    /// let copy_of_node = second.embedded()?.find_clone_of(node)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2). Reads the nodes of the clone by `cuGraphGetNodes` for
    /// each graph and `cuGraphChildGraphNodeGetGraph` for each embedded graph (CUDA 10.0).
    ///
    /// # Errors
    /// - [`EmbedError::EmbedsItself`], if the frontier lies in `graph` or in a graph embedded in
    ///   it. The driver would crash.
    /// - [`EmbedError::Embedded`], if `graph` is embedded in a node. Embed a
    ///   [clone](Graph::clone_graph) of it.
    /// - [`MemoryError::HasMemory`](crate::MemoryError::HasMemory), if `graph` has memory nodes,
    ///   and [`ConditionError::HasConditions`](crate::ConditionError::HasConditions), if it has
    ///   conditions.
    /// - [`ConditionError::NotInBody`](crate::ConditionError::NotInBody), if the frontier lies in a
    ///   body that cannot hold a node of `graph`.
    /// - [`ConditionError::ChildInTwoBodies`](crate::ConditionError::ChildInTwoBodies), if the
    ///   frontier lies in one of two bodies, and the driver (CUDA 12.8 or 12.9) mixes up child
    ///   graphs there.
    /// - [`NodeError::Removed`], if a node of the frontier was removed.
    /// - [`Error::Handles`], if `graph` belongs to another context, or the driver reports an error.
    /// - [`Error::Broken`], if the driver reports an error and also fails to remove the node.
    ///
    /// The graph is unchanged, except after [`Error::Broken`].
    #[doc(alias = "cuGraphAddChildGraphNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddChildGraphNode")]
    #[doc(alias = "cudaGraphAddNode")]
    pub fn child(&self, graph: &Graph) -> Result<ChildGraphNode> {
        ensure_child(self.graph(), graph)?;
        let mut guards = self.graph().enter_with(graph)?;
        let snapshot = copy_for(&mut guards, self.graph().subgraph(), None, "")?;
        guards.ours.ensure_may_hold_all(self.graph().subgraph(), &snapshot)?;
        let mut params = params(guards.other_raw()?, CLONED);
        let subgraph = self.graph().subgraph();
        guards.ours.reserve_many(subgraph, snapshot.len() + 1);
        let alone = Some(alone_in_order(self.graph().context())?);
        let id = self.insert(&mut guards.ours, NewClone { subgraph, snapshot, alone }, &mut params)?;
        drop(guards);
        Ok(ChildGraphNode::wrap(Node::new(self.graph().clone(), id, NodeKind::ChildGraph)))
    }

    /// Adds a node that runs `graph` itself, which becomes its [embedded
    /// graph](ChildGraphNode::embedded).
    ///
    /// Unlike a [clone](Self::child), `graph` may have memory nodes. Other handles of `graph`, of
    /// its nodes and of its embedded graphs become invalid ([`NodeError::GraphMoved`]).
    /// [`find_clone_of`](Graph::find_clone_of) finds its nodes in the embedded graph. Existing
    /// executables of `graph` stay valid. The embedded graph cannot be moved or embedded again, but
    /// cloned.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.9).
    ///
    /// # Errors
    /// - [`EmbedError::CannotMove`], if the driver is older than CUDA 12.9.
    /// - [`EmbedError::EmbedsItself`], if the frontier lies in `graph` or in a graph embedded in
    ///   it.
    /// - [`EmbedError::Embedded`], if `graph` is embedded in a node.
    /// - [`EmbedError::NotOwned`], if `graph` belongs to other code.
    /// - [`ExecError::OneExecutable`](crate::ExecError::OneExecutable), if `graph` has memory nodes
    ///   and an executable.
    /// - [`ConditionError::HasConditions`](crate::ConditionError::HasConditions), if `graph` has
    ///   conditions.
    /// - [`ConditionError::NotInBody`](crate::ConditionError::NotInBody), if the frontier lies in a
    ///   body that cannot hold a node of `graph`.
    /// - [`EdgeError::MovesBefore`](crate::EdgeError::MovesBefore), if the frontier lies before
    ///   other nodes.
    /// - [`NodeError::Removed`], if a node of the frontier was removed.
    /// - [`Error::Handles`], if `graph` belongs to another context, or the driver reports an error.
    ///
    /// `graph` is then unchanged, and lives on if there is another handle of it.
    #[doc(alias = "CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddChildGraphNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaGraphChildGraphOwnershipMove")]
    pub fn child_moved(&self, graph: Graph) -> Result<ChildGraphNode> {
        ensure_child(self.graph(), &graph)?;
        let found = graph.context().driver().version();
        if !found.has(Feature::ChildGraphMove) {
            return Err(Error::Embed(EmbedError::CannotMove { found }));
        }
        after_deferred(&graph, || self.take_in(&graph))
    }

    fn take_in(&self, graph: &Graph) -> Result<ChildGraphNode> {
        // Declared before the guards: the old state of `graph` is dropped after the locks.
        let leftover;
        let mut guards = self.graph().enter_with(graph)?;
        if guards.are_in_one_hierarchy() && graph.subgraph().is_root() {
            return Err(Error::Embed(EmbedError::EmbedsItself));
        }
        if !graph.subgraph().is_root() {
            return Err(Error::Embed(EmbedError::Embedded { what: "moved into another one" }));
        }
        if !graph.handle().is_owned() {
            return Err(Error::Embed(EmbedError::NotOwned));
        }
        if let Some(root) = self.root_to_take_over(&mut guards)? {
            return self.take_over(guards, root, graph);
        }
        let snapshot = { guards.other().0.copy(SubgraphId::ROOT)? };
        guards.other().0.ensure_no_executable()?;
        guards.ours.ensure_may_hold_all(self.graph().subgraph(), &snapshot)?;
        let clone_map = snapshot.themselves();
        let mut params = params(guards.other_raw()?, MOVED);
        guards.ours.reserve_many(self.graph().subgraph(), snapshot.len() + 1);
        let id = self.insert_moved(&mut guards.ours, &mut params)?;
        let runs = guards.other().0.last_runs.clone();
        guards.ours.last_runs.merge(&runs);
        leftover = guards.other().0.move_out();
        snapshot.let_memory_belong_to(guards.ours.memory_number());
        enter(&mut guards.ours, id, snapshot, &clone_map, true);
        // SAFETY: the driver's graph now belongs to the node. This comes last and under both locks:
        // a look-up by the raw graph finds either this handle or the embedded graph.
        unsafe { graph.handle().disown() };
        drop(guards);
        drop(leftover);
        Ok(ChildGraphNode::wrap(Node::new(self.graph().clone(), id, NodeKind::ChildGraph)))
    }

    /// The root graph of the second hierarchy, if the first hierarchy is to take over its state.
    fn root_to_take_over(&self, guards: &mut GuardPair<'_>) -> Result<Option<MovedRoot>> {
        let (first, Some(moved)) = guards.both() else { return Ok(None) };
        if !first.should_take_over(moved, self.graph().subgraph()) {
            return Ok(None);
        }
        moved.ensure_no_executable()?;
        let raws = moved.raw_nodes()?;
        let records = raws.into_iter().map(|raw| moved.index(raw)).collect::<Result<Vec<_>>>()?;
        let (raw, hierarchy, memory) = (moved.raw(), moved.number(), moved.memory_number());
        Ok(Some(MovedRoot { raw, hierarchy, memory, records }))
    }

    /// [`take_in`](Self::take_in) for a graph with more nodes than this hierarchy: takes over its
    /// state instead of copying its records.
    fn take_over(&self, mut guards: GuardPair<'_>, root: MovedRoot, graph: &Graph) -> Result<ChildGraphNode> {
        let mut params = params(root.raw, MOVED);
        let id = self.insert_moved(&mut guards.ours, &mut params)?;
        let moved = guards.other().0.move_out();
        guards.ours.last_runs.merge(&moved.last_runs);
        let (_, subgraphs, leftover) = guards.ours.take_over(moved, root, id);
        guards.ours.register_taken_over(&subgraphs);
        // SAFETY: as in `take_in`.
        unsafe { graph.handle().disown() };
        drop(guards);
        drop(leftover);
        Ok(ChildGraphNode::wrap(Node::new(self.graph().clone(), id, NodeKind::ChildGraph)))
    }

    /// Adds the node of a moved graph. The caller enters the embedded graph afterwards.
    fn insert_moved(&self, guard: &mut GraphGuard<'_>, params: &mut CUgraphNodeParams) -> Result<NodeId> {
        let node_params = NodeParams::Child { graph: SubgraphId::ROOT };
        let new = PlainNode { subgraph: self.graph().subgraph(), node_params, owners: Owners::new() };
        let _alone = alone_in_order(self.graph().context())?;
        self.insert(guard, new, params)
    }
}

/// A child graph node, to be added with a clone of a graph.
struct NewClone {
    subgraph: SubgraphId,
    snapshot: GraphSnapshot,
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
        // Undoing the insertion takes it again.
        drop(self.alone.take());
        read(guard, &self.snapshot, raw)
    }

    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, clone_map: CloneMap) -> NodeId {
        // `enter` sets the subgraph once the record exists.
        let node_params = NodeParams::Child { graph: SubgraphId::ROOT };
        let id = guard.insert(self.subgraph, added, node_params, Owners::new());
        enter(guard, id, self.snapshot, &clone_map, false);
        id
    }

    fn into_owners(self) -> Owners {
        self.snapshot.into_owners()
    }
}

pub(crate) const CLONED: CUgraphChildGraphNodeOwnership =
    CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
const MOVED: CUgraphChildGraphNodeOwnership =
    CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;

/// Takes a snapshot of the second graph, if the graph `into` can embed a clone of it in place of
/// the graph `instead`.
pub(crate) fn copy_for(
    guards: &mut GuardPair<'_>,
    into: SubgraphId,
    instead: Option<SubgraphId>,
    node: &str,
) -> Result<GraphSnapshot> {
    let beside = guards.are_in_one_hierarchy();
    let (source, subgraph) = guards.other();
    if beside && source.self_and_ancestors(into).any(|outer| outer == subgraph) {
        return Err(Error::Embed(EmbedError::EmbedsItself));
    }
    if beside && source.self_and_ancestors(subgraph).any(|outer| Some(outer) == instead) {
        return Err(Error::Embed(EmbedError::ReplacesItself { node: node.into() }));
    }
    if !subgraph.is_root() {
        return Err(Error::Embed(EmbedError::Embedded { what: "embedded in another one" }));
    }
    let snapshot = source.copy(subgraph)?;
    snapshot.ensure_without_memory()?;
    Ok(snapshot)
}

/// The driver's nodes of the graph that is embedded in `node` now.
fn read(guard: &GraphGuard<'_>, snapshot: &GraphSnapshot, node: CUgraphNode) -> Result<CloneMap> {
    guard.pair(snapshot, guard.raw_embedded(node)?)
}

/// Enters the graph that is embedded in `node` now.
fn enter(
    guard: &mut GraphGuard<'_>,
    node: NodeId,
    snapshot: GraphSnapshot,
    clone_map: &CloneMap,
    moved: bool,
) {
    let inner = guard.embed(clone_map.graph(), node);
    if let Some(record) = guard.record_mut(node) {
        record.node_params.set_embedded(inner);
    }
    let subgraphs = guard.paste(snapshot, clone_map, inner, moved);
    guard.register(&subgraphs);
}

/// The driver's parameters of a child graph node.
pub(crate) fn params(graph: CUgraph, ownership: CUgraphChildGraphNodeOwnership) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH);
    params.__bindgen_anon_1.graph.graph = graph;
    params.__bindgen_anon_1.graph.ownership = ownership;
    params
}
