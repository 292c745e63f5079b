//! Nodes that run a body, or one of several, if a condition says so.

use cuda_sys::{
    CUgraphConditionalNodeType as RawClass, CUgraphNode, CUgraphNodeParams, CUgraphNodeType, Version,
};
use smallvec::SmallVec;

use crate::build::frontier::Frontier;
use crate::build::insertion::NewNode;
use crate::condition::Condition;
use crate::condition::body::add_default;
use crate::condition::ensure_conditionals;
use crate::condition::set_kernel::SetKernel;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::node::{Node, typed};
use crate::node_kind::NodeKind;
use crate::state::AddedNode;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::{ConditionSource, Conditional, ConditionalKind, NodeParams};
use crate::state::raw_params::blank;
use crate::state::raw_params::raw_bodies;
use cuda_sys::CUgraph;

typed! {
    /// A node that runs its body if its condition is not 0.
    IfNode, If
}

typed! {
    /// A node that runs the one of two bodies if its condition is not 0, else the other.
    IfElseNode, IfElse
}

typed! {
    /// A node that runs its body again and again as long as its condition is not 0, which may be no
    /// time.
    WhileNode, While
}

typed! {
    /// A node that runs the body whose number its condition is, or none if there is no such body.
    SwitchNode, Switch
}

impl IfNode {
    /// What runs if the condition is not 0.
    #[doc = include_str!("body.md")]
    pub fn body(&self) -> Result<Graph> {
        self.nth_body(0)
    }
}

impl IfElseNode {
    /// What runs if the condition is not 0.
    #[doc = include_str!("body.md")]
    pub fn then_body(&self) -> Result<Graph> {
        self.nth_body(0)
    }

    /// What runs if the condition is 0.
    #[doc = include_str!("body.md")]
    pub fn else_body(&self) -> Result<Graph> {
        self.nth_body(1)
    }
}

impl WhileNode {
    /// What runs in each round.
    #[doc = include_str!("body.md")]
    pub fn body(&self) -> Result<Graph> {
        self.nth_body(0)
    }
}

impl SwitchNode {
    /// What runs for each value of the condition, from 0 on.
    #[doc = include_str!("body.md")]
    pub fn bodies(&self) -> Result<Vec<Graph>> {
        self.all_bodies()
    }
}

impl Node {
    /// The bodies of a conditional node of any class, in the order of the values that choose them,
    /// but that [`IfElseNode`] has first what runs for any value but 0; none of other nodes.
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
        // The handle is made for rows of its kind only, and a row keeps its kind.
        self.all_bodies()?.into_iter().nth(index).ok_or_else(|| self.removed())
    }
}

impl Frontier<'_> {
    /// Adds a node that runs its body if the condition is not 0.
    ///
    /// Stands on `cuGraphAddNode` with a conditional node, CUDA 12.3. In a body, a condition with a
    /// default costs another node that sets it; see [`Graph::condition_with_default`].
    ///
    /// # Errors
    /// A condition of another graph ([`Error::ForeignCondition`]) or of another node
    /// ([`Error::ConditionInUse`]); a node of the frontier was removed; or what the driver answers.
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    pub fn if_node(&self, condition: &Condition) -> Result<IfNode> {
        self.conditional(ConditionalKind::If, condition, 1).map(IfNode::wrap)
    }

    /// Adds a node that runs the first of two bodies if the condition is not 0, else the second.
    /// The example `bisection` is a whole program with one.
    ///
    /// Stands on `cuGraphAddNode` with a conditional node, CUDA 12.8.
    ///
    /// # Errors
    /// As for [`if_node`](Self::if_node); an older driver ([`Error::TooOld`]).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    pub fn if_else_node(&self, condition: &Condition) -> Result<IfElseNode> {
        self.conditional(ConditionalKind::IfElse, condition, 2).map(IfElseNode::wrap)
    }

    /// Adds a node that runs its body as long as the condition is not 0; it is looked at before
    /// each round. With a default of 0 and nobody who sets the condition before, no round is run;
    /// with another default, the first is, and the body has to set the condition to 0 some time.
    ///
    /// Stands on `cuGraphAddNode` with a conditional node, CUDA 12.3.
    ///
    /// # Errors
    /// As for [`if_node`](Self::if_node).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_WHILE")]
    pub fn while_node(&self, condition: &Condition) -> Result<WhileNode> {
        self.conditional(ConditionalKind::While, condition, 1).map(WhileNode::wrap)
    }

    /// Adds a node that runs the one of `branches` bodies whose number the condition is, from 0 on;
    /// none if there is no such body. The example `dispatch` is a whole program with one.
    ///
    /// Stands on `cuGraphAddNode` with a conditional node, CUDA 12.8.
    ///
    /// # Errors
    /// As for [`if_node`](Self::if_node); a number of branches below 1 or above 1000
    /// ([`Error::Branches`]); an older driver ([`Error::TooOld`]).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_SWITCH")]
    pub fn switch_node(&self, condition: &Condition, branches: usize) -> Result<SwitchNode> {
        if !(1..=Error::MOST_BRANCHES).contains(&branches) {
            return Err(Error::Branches { branches });
        }
        self.conditional(ConditionalKind::Switch, condition, branches).map(SwitchNode::wrap)
    }

    /// Adds a node of a class with so many bodies.
    pub(crate) fn conditional(
        &self,
        class: ConditionalKind,
        condition: &Condition,
        bodies: usize,
    ) -> Result<Node> {
        ensure_conditionals(class, self.graph().context())?;
        let kind = class.node_kind();
        if !condition.graph().is_in_same_hierarchy(self.graph()) {
            return Err(Error::ForeignCondition { node: kind.to_string().into() });
        }
        let setter = match condition.default_value() {
            Some(default) if !self.graph().subgraph().is_root() => {
                Some(SetKernel::load(self.graph().context(), condition.handle().as_raw(), default)?)
            }
            _ => None,
        };
        let mut params = params(self.graph(), class, condition, bodies);
        let mut guard = self.graph().enter()?;
        guard.ensure_no_place_holder_around(self.graph().subgraph(), kind)?;
        guard.ensure_unused(condition)?;
        guard.reserve_many(self.graph().subgraph(), 2);
        let add = |setter| add_default(self.graph(), &mut guard, condition.number(), setter);
        let default = setter.map(add).transpose()?;
        let frontier = default.map_or_else(|| self.clone(), |id| self.clone().and_id(id));
        let subgraph = self.graph().subgraph();
        let new = NewConditional { subgraph, class, condition: condition.number(), default };
        let id = frontier.insert(&mut guard, new, &mut params);
        let id = id.map_err(|cause| guard.take_default_back(default, cause))?;
        drop(guard);
        Ok(Node::new(self.graph().clone(), id, kind))
    }
}

/// A conditional node to be added.
struct NewConditional {
    subgraph: SubgraphId,
    class: ConditionalKind,
    condition: u64,
    default: Option<NodeId>,
}

/// A body that the driver made, with the node put into it where the driver would hang with an empty
/// one.
type NewBody = (CUgraph, Option<CUgraphNode>);

impl NewNode for NewConditional {
    type Found = SmallVec<[NewBody; 2]>;

    fn kind(&self) -> NodeKind {
        self.class.node_kind()
    }

    fn finish(
        &mut self,
        guard: &mut GraphGuard<'_>,
        _: CUgraphNode,
        params: &CUgraphNodeParams,
    ) -> Result<Self::Found> {
        let fills = guard.driver().version() < EMPTY_BODIES;
        let fill = |body| {
            let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY);
            Ok((body, fills.then(|| guard.add_alone(body, &mut params)).transpose()?))
        };
        raw_bodies(params).into_iter().map(fill).collect()
    }

    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, found: Self::Found) -> NodeId {
        let Self { class, condition, default, .. } = self;
        let node_params = |bodies| {
            let source = ConditionSource::Condition(condition);
            NodeParams::Conditional(Conditional { kind: class, source, control: None, bodies, default })
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
    /// Refuses a condition that has its node already.
    fn ensure_unused(&self, condition: &Condition) -> Result<()> {
        let number = condition.number();
        let entry = self
            .conditions
            .find(number)
            .ok_or_else(|| Error::ForeignCondition { node: "conditional".into() })?;
        match self.node_of(entry) {
            Some(id) => Err(Error::ConditionInUse { number, node: self.name(id) }),
            None => Ok(()),
        }
    }
}

/// The first driver that has bodies without nodes.
const EMPTY_BODIES: Version = Version::new(12, 8);

/// The driver's form of a conditional node.
fn params(graph: &Graph, class: ConditionalKind, condition: &Condition, bodies: usize) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL);
    let to = &mut params.__bindgen_anon_1;
    to.conditional.handle = condition.handle().as_raw();
    to.conditional.type_ = match class {
        ConditionalKind::If | ConditionalKind::IfElse => RawClass::CU_GRAPH_COND_TYPE_IF,
        ConditionalKind::While => RawClass::CU_GRAPH_COND_TYPE_WHILE,
        ConditionalKind::Switch => RawClass::CU_GRAPH_COND_TYPE_SWITCH,
    };
    // At most a thousand.
    to.conditional.size = bodies as u32;
    to.conditional.ctx = graph.context().as_raw();
    params
}
