//! Conditional nodes: run bodies as the value of a condition says.

use cuda_sys::{CUgraphNode, CUgraphNodeParams, CUgraphNodeType, Feature};
use smallvec::SmallVec;

use crate::build::frontier::Frontier;
use crate::build::insertion::NewNode;
use crate::condition::Condition;
use crate::condition::body::add_default;
use crate::condition::ensure_conditionals;
use crate::condition::set_kernel::SetKernel;
use crate::error::{ConditionError, Error, Result};
use crate::graph::Graph;
use crate::graph::node::{Node, typed};
use crate::node_kind::NodeKind;
use crate::state::AddedNode;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::{ConditionSource, Conditional, ConditionalKind, NodeParams};
use crate::state::raw_params::{blank, conditional_params, raw_bodies};
use cuda_sys::CUgraph;

typed! {
    /// A node that runs its [body](Self::body) if its [`Condition`] is not 0.
    ///
    /// Kernels set the condition while the graph runs; see [`Condition`]. Add one with
    /// [`Frontier::if_node`], or with [`Frontier::if_then`] for a test of a number in memory.
    #[doc(alias = "CUDA_CONDITIONAL_NODE_PARAMS")]
    #[doc(alias = "cudaConditionalNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeConditional")]
    IfNode, If
}

typed! {
    /// A node that runs the first of two bodies if its [`Condition`] is not 0, and the second
    /// otherwise.
    ///
    /// Kernels set the condition while the graph runs; see [`Condition`]. Add one with
    /// [`Frontier::if_else_node`], or with [`Frontier::if_then_else`] for a test of a number in
    /// memory.
    #[doc(alias = "CUDA_CONDITIONAL_NODE_PARAMS")]
    #[doc(alias = "cudaConditionalNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeConditional")]
    IfElseNode, IfElse
}

typed! {
    /// A node that runs its [body](Self::body) repeatedly while its [`Condition`] is not 0.
    ///
    /// The condition is checked before each round, so there may be none. A kernel in the body sets
    /// the condition for the next round; see [`Condition`]. Add one with [`Frontier::while_node`],
    /// or with [`Frontier::while_loop`] for a test of a number in memory.
    #[doc(alias = "CUDA_CONDITIONAL_NODE_PARAMS")]
    #[doc(alias = "cudaConditionalNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeConditional")]
    WhileNode, While
}

typed! {
    /// A node that runs the body whose index is the value of its [`Condition`], or none if there is
    /// no such body.
    ///
    /// Kernels set the condition while the graph runs; see [`Condition`]. Add one with
    /// [`Frontier::switch_node`].
    #[doc(alias = "CUDA_CONDITIONAL_NODE_PARAMS")]
    #[doc(alias = "cudaConditionalNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeConditional")]
    SwitchNode, Switch
}

impl IfNode {
    /// The body: the graph that runs if the condition is not 0.
    #[doc = include_str!("body.md")]
    pub fn body(&self) -> Result<Graph> {
        self.nth_body(0)
    }
}

impl IfElseNode {
    /// The body that runs if the condition is not 0.
    #[doc = include_str!("body.md")]
    pub fn then_body(&self) -> Result<Graph> {
        self.nth_body(0)
    }

    /// The body that runs if the condition is 0.
    #[doc = include_str!("body.md")]
    pub fn else_body(&self) -> Result<Graph> {
        self.nth_body(1)
    }
}

impl WhileNode {
    /// The body: the graph that runs in each round.
    #[doc = include_str!("body.md")]
    pub fn body(&self) -> Result<Graph> {
        self.nth_body(0)
    }
}

impl SwitchNode {
    /// The bodies, by the value of the condition: the first runs for 0.
    #[doc = include_str!("body.md")]
    pub fn bodies(&self) -> Result<Vec<Graph>> {
        self.all_bodies()
    }
}

impl Node {
    /// The bodies of a conditional node of any kind; empty for other nodes.
    ///
    /// The bodies of a [`SwitchNode`] are in the order of the values that select them. The first
    /// body of an [`IfElseNode`] runs if the condition is not 0.
    #[doc = include_str!("body.md")]
    pub fn all_bodies(&self) -> Result<Vec<Graph>> {
        match self.node_params()? {
            NodeParams::Conditional(Conditional { bodies, .. }) => {
                Ok(bodies.iter().map(|body| self.graph().at(*body)).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    pub(crate) fn nth_body(&self, index: usize) -> Result<Graph> {
        // A handle is made only for a record of its kind, and a record keeps its kind.
        self.all_bodies()?.into_iter().nth(index).ok_or_else(|| self.removed())
    }
}

impl Frontier<'_> {
    /// Adds a node that runs its body if `condition` is not 0.
    ///
    /// ```no_run
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     fn compare(values: In<f32>, outcome: ConditionalHandle);
    /// # }
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::Buffer;
    /// # fn main() {}
    /// # fn example(graph: &Graph, compare: &compare, values: &Buffer<f32>) -> Result<()> {
    /// let outcome = graph.condition_with_default(0)?;
    /// let test = graph.root().launch(compare, cuda_launch::per(1000, 256), (values, &outcome))?;
    /// let branch = test.then().if_node(&outcome)?;
    /// branch.body()?.root().clear(values)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// In a body, a condition with a default adds a second node, which sets it; see
    /// [`Graph::condition_with_default`].
    ///
    /// Calls `cuGraphAddNode` with a conditional node (CUDA 12.3).
    ///
    /// # Errors
    /// - [`Error::TooOld`], if the driver is older.
    /// - [`ConditionError::ForeignCondition`], if the condition belongs to another graph.
    /// - [`ConditionError::ConditionInUse`], if another node uses the condition.
    /// - [`LoopError::HostDecides`](crate::LoopError::HostDecides), if the frontier lies in the
    ///   body of a loop or branch that the host runs.
    /// - [`NodeError::Removed`](crate::NodeError::Removed), if a node of the frontier was removed.
    /// - [`Error::Handles`], if the driver reports an error.
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaGraphCondTypeIf")]
    #[doc(alias = "conditional")]
    pub fn if_node(&self, condition: &Condition) -> Result<IfNode> {
        self.conditional(ConditionalKind::If, condition, 1).map(IfNode::wrap)
    }

    /// Adds a node that runs the first of two bodies if `condition` is not 0, and the second
    /// otherwise.
    ///
    /// The example `bisection` is a complete program with such a node.
    ///
    /// Calls `cuGraphAddNode` with a conditional node (CUDA 12.8).
    ///
    /// # Errors
    /// The errors of [`if_node`](Self::if_node).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaGraphCondTypeIf")]
    #[doc(alias = "conditional")]
    pub fn if_else_node(&self, condition: &Condition) -> Result<IfElseNode> {
        self.conditional(ConditionalKind::IfElse, condition, 2).map(IfElseNode::wrap)
    }

    /// Adds a node that runs its body repeatedly while `condition` is not 0.
    ///
    /// The condition is checked before each round. With a default of 0, there is no round unless a
    /// kernel sets the condition before the node. With another default there is a first round, and
    /// a kernel in the body eventually has to set the condition to 0; see the example of
    /// [`Condition`].
    ///
    /// Calls `cuGraphAddNode` with a conditional node (CUDA 12.3).
    ///
    /// # Errors
    /// The errors of [`if_node`](Self::if_node).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_WHILE")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaGraphCondTypeWhile")]
    #[doc(alias = "conditional")]
    pub fn while_node(&self, condition: &Condition) -> Result<WhileNode> {
        self.conditional(ConditionalKind::While, condition, 1).map(WhileNode::wrap)
    }

    /// Adds a node that runs one of `branches` bodies: the one whose index is the value of
    /// `condition`, or none if there is no such body.
    ///
    /// ```no_run
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     fn choose(values: In<f32>, branch: ConditionalHandle);
    /// # }
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::Buffer;
    /// # fn main() {}
    /// # fn example(graph: &Graph, choose: &choose, values: &Buffer<f32>) -> Result<()> {
    /// let branch = graph.condition_with_default(0)?;
    /// let choice = graph.root().launch(choose, cuda_launch::per(1000, 256), (values, &branch))?;
    /// let switch = choice.then().switch_node(&branch, 3)?;
    /// for (index, body) in switch.bodies()?.iter().enumerate() {
    ///     body.root().fill(values, index as f32)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The example `dispatch` is a complete program with such a node.
    ///
    /// Calls `cuGraphAddNode` with a conditional node (CUDA 12.8).
    ///
    /// # Errors
    /// The errors of [`if_node`](Self::if_node), and [`ConditionError::Branches`], if `branches` is
    /// not between 1 and 1000.
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_SWITCH")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaGraphCondTypeSwitch")]
    #[doc(alias = "conditional")]
    pub fn switch_node(&self, condition: &Condition, branches: usize) -> Result<SwitchNode> {
        if !(1..=ConditionError::MOST_BRANCHES).contains(&branches) {
            return Err(Error::Condition(ConditionError::Branches { branches }));
        }
        self.conditional(ConditionalKind::Switch, condition, branches).map(SwitchNode::wrap)
    }

    /// Adds a conditional node of any kind with a number of bodies.
    pub(crate) fn conditional(
        &self,
        kind: ConditionalKind,
        condition: &Condition,
        bodies: usize,
    ) -> Result<Node> {
        ensure_conditionals(kind, self.graph().context())?;
        let node_kind = kind.node_kind();
        if !condition.graph().is_in_same_hierarchy(self.graph()) {
            return Err(Error::Condition(ConditionError::ForeignCondition {
                node: node_kind.to_string().into(),
            }));
        }
        let raw = condition.handle().as_raw();
        let setter = match condition.default_value() {
            Some(default) if !self.graph().subgraph().is_root() => {
                Some(SetKernel::load(self.graph().context(), raw, default)?)
            }
            _ => None,
        };
        let mut params = conditional_params(self.graph().context(), kind, raw, bodies);
        let mut guard = self.graph().enter()?;
        guard.ensure_no_placeholder_around(self.graph().subgraph(), node_kind)?;
        guard.ensure_unused(condition)?;
        guard.reserve_many(self.graph().subgraph(), 2);
        if setter.is_some() {
            self.ensure_position(&mut guard, node_kind)?;
        }
        let add = |setter| add_default(self.graph(), &mut guard, condition.number(), setter);
        let default = setter.map(add).transpose()?;
        let frontier = default.map_or_else(|| self.clone(), |id| self.clone().and_id(id));
        let subgraph = self.graph().subgraph();
        let new = NewConditional { subgraph, kind, condition: condition.number(), default };
        let id = frontier.insert(&mut guard, new, &mut params);
        let id = id.map_err(|cause| guard.take_default_back(default, cause))?;
        drop(guard);
        Ok(Node::new(self.graph().clone(), id, node_kind))
    }
}

/// A conditional node to be added.
struct NewConditional {
    subgraph: SubgraphId,
    kind: ConditionalKind,
    condition: u64,
    default: Option<NodeId>,
}

/// A body that the driver made. On drivers that hang with an empty body, the node added to it.
type NewBody = (CUgraph, Option<CUgraphNode>);

impl NewNode for NewConditional {
    type Found = SmallVec<[NewBody; 2]>;

    fn kind(&self) -> NodeKind {
        self.kind.node_kind()
    }

    fn finish(
        &mut self,
        guard: &mut GraphGuard<'_>,
        _: CUgraphNode,
        params: &CUgraphNodeParams,
    ) -> Result<Self::Found> {
        let fills = !guard.driver().version().has(Feature::EmptyBody);
        let fill = |body| {
            let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY);
            Ok((body, fills.then(|| guard.add_alone(body, &mut params)).transpose()?))
        };
        raw_bodies(params).into_iter().map(fill).collect()
    }

    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, found: Self::Found) -> NodeId {
        let Self { kind, condition, default, .. } = self;
        let node_params = |bodies| {
            let source = ConditionSource::Condition(condition);
            NodeParams::Conditional(Conditional { kind, source, control: None, bodies, default })
        };
        let id = guard.insert(self.subgraph, added, node_params(Box::default()), Owners::new());
        let bodies: Box<[SubgraphId]> =
            found.into_iter().map(|(body, filler)| enter_body(guard, id, body, filler)).collect();
        if let Some(inserted) = guard.record_mut(id) {
            inserted.node_params = node_params(bodies);
        }
        if let Some(entry) = guard.conditions.find_mut(condition) {
            entry.node = Some(id);
        }
        id
    }

    fn into_owners(self) -> Owners {
        Owners::new()
    }
}

/// Enters a body of a conditional node.
fn enter_body(
    guard: &mut GraphGuard<'_>,
    node: NodeId,
    body: CUgraph,
    filler: Option<CUgraphNode>,
) -> SubgraphId {
    let subgraph = guard.embed_body(body, node);
    if let Some(filler) = filler {
        let id = guard.insert(subgraph, filler, NodeParams::Empty, Owners::new());
        if let Some(record) = guard.record_mut(id) {
            record.name = Some("for drivers that hang with an empty body".into());
        }
    }
    subgraph
}

impl GraphGuard<'_> {
    /// Refuses a condition that has a node already.
    fn ensure_unused(&self, condition: &Condition) -> Result<()> {
        let number = condition.number();
        let entry = self.conditions.find(number).ok_or_else(|| {
            Error::Condition(ConditionError::ForeignCondition { node: "conditional".into() })
        })?;
        match self.node_of(entry) {
            Some(id) => Err(Error::Condition(ConditionError::ConditionInUse { number, node: self.name(id) })),
            None => Ok(()),
        }
    }
}
