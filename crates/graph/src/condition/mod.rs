//! Conditions: values that kernels set and conditional nodes read.

pub(crate) mod body;
pub(crate) mod by_default;
pub(crate) mod kernels;
pub(crate) mod set_kernel;

use core::fmt;
use core::hash::{Hash, Hasher};
use std::sync::Arc;

use cuda_launch::{Argument, ConditionalHandle, FixedArgument, KernelArg, Params};
use cuda_sys::{CUgraph, Call};

use crate::error::wrong_context::Spans;
use crate::error::{ConditionError, Error, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::conditions::{ConditionEntry, Handles};
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::params::ConditionalKind;
use cuda_handles::Context;
use cuda_sys::{Feature, Version};

/// A condition: a 32-bit value that kernels set while the graph runs, and that one conditional node
/// reads.
///
/// Make one with [`Graph::condition`] or [`Graph::condition_with_default`]. Pass it to kernels as
/// an argument (a parameter declared as [`ConditionalHandle`]), and to the node
/// ([`if_node`](crate::Frontier::if_node), [`while_node`](crate::Frontier::while_node) and others).
///
/// A condition belongs to a root graph, its bodies, and the graphs embedded in it. In other graphs
/// it is refused ([`ConditionError::ForeignCondition`]). Kernels that decide about the node run
/// before it; kernels in the body of a loop decide about the next round.
///
/// The handle keeps the graph alive. Two handles are equal if they stand for the same condition.
///
/// ```no_run
/// # cuda_launch::kernel! {
/// #     unsafe in cuda_handles::Image::Ptx("");
/// #     fn step(values: InOut<f32>, go_on: ConditionalHandle);
/// # }
/// # use cuda_graph::{Graph, Result};
/// # use cuda_handles::Buffer;
/// # fn main() {}
/// # fn example(graph: &Graph, step: &step, values: &Buffer<f32>) -> Result<()> {
/// // Runs `step` until it sets the condition to 0.
/// let go_on = graph.condition_with_default(1)?;
/// let rounds = graph.root().while_node(&go_on)?;
/// rounds.body()?.root().launch(step, cuda_launch::per(1000, 256), (values, &go_on))?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "cudaGraphConditionalHandle")]
#[doc(alias = "CUgraphConditionalHandle")]
#[derive(Clone)]
pub struct Condition {
    /// The root graph.
    graph: Graph,
    raw: u64,
    default: Option<u32>,
    shared: Arc<Handles>,
}

impl Graph {
    /// Makes a condition without a default. It keeps its last value from one launch of an
    /// executable to the next.
    ///
    /// Its first value is undefined: a new executable may get the value that another executable
    /// left. Let a kernel set the condition before its node runs, or make a condition [with a
    /// default](Self::condition_with_default).
    ///
    /// The driver cannot destroy a condition, and instantiates no graph with a condition that no
    /// node uses ([`ConditionError::UnusedCondition`]). If all handles of an unused condition are
    /// dropped, the next condition with the same default takes its place.
    ///
    /// Calls `cuGraphConditionalHandleCreate` (CUDA 12.3).
    ///
    /// # Errors
    /// [`Error::Handles`], if the driver is older or reports an error.
    #[doc(alias = "cuGraphConditionalHandleCreate")]
    #[doc(alias = "cudaGraphConditionalHandleCreate")]
    pub fn condition(&self) -> Result<Condition> {
        self.make_condition(None)
    }

    /// Makes a condition that gets the value `default` whenever the graph of its conditional node
    /// starts: at each launch or, if the node lies in a body, each time the body starts.
    ///
    /// The driver sets defaults once per launch, so an inner loop would run only in the first
    /// iteration of the outer one. In a body, this library therefore adds a kernel node that
    /// assigns the default. It runs before the conditional node and before all kernels of that body
    /// that set the condition.
    ///
    /// Calls `cuGraphConditionalHandleCreate` (CUDA 12.3).
    ///
    /// # Errors
    /// The errors of [`condition`](Self::condition).
    #[doc(alias = "cuGraphConditionalHandleCreate")]
    #[doc(alias = "CU_GRAPH_COND_ASSIGN_DEFAULT")]
    #[doc(alias = "cudaGraphConditionalHandleCreate")]
    #[doc(alias = "cudaGraphCondAssignDefault")]
    pub fn condition_with_default(&self, default: u32) -> Result<Condition> {
        self.make_condition(Some(default))
    }

    fn make_condition(&self, default: Option<u32>) -> Result<Condition> {
        let mut guard = self.enter()?;
        guard.ensure_one_context()?;
        let shared = guard.conditions.next_handles();
        let raw = match guard.reusable(default) {
            Some(raw) => raw,
            None => guard.create_condition(guard.raw(), default)?,
        };
        guard.conditions.insert(raw, default, &shared);
        drop(guard);
        Ok(Condition { graph: self.at(SubgraphId::ROOT), raw, default, shared })
    }
}

impl Condition {
    /// The graph of the condition. If the condition was made on a body or an embedded graph, this
    /// is the root graph around it.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The value that the condition gets whenever its graph starts; `None` without a default.
    #[must_use]
    pub fn default_value(&self) -> Option<u32> {
        self.default
    }

    /// The conditional node that reads the condition; `None` if there is none.
    ///
    /// # Errors
    /// [`NodeError::GraphMoved`](crate::NodeError::GraphMoved), if the graph was moved into a node.
    pub fn node(&self) -> Result<Option<Node>> {
        let guard = self.graph.look()?;
        let found = guard.conditions.find(self.number()).and_then(|entry| entry.node);
        let found = found
            .and_then(|id| guard.record(id).map(|record| (id, record.within, record.node_params.kind())));
        Ok(found.map(|(id, within, kind)| Node::new(self.graph.at(within), id, kind)))
    }

    /// The handle to pass to kernels.
    #[must_use]
    pub fn handle(&self) -> ConditionalHandle {
        // SAFETY: the driver made the handle for the live graph of this number. A graph never
        // reuses the number of a condition, and adding a kernel compares both numbers.
        unsafe { ConditionalHandle::new(self.raw, self.graph.number(), self.number()) }
    }

    pub(crate) fn number(&self) -> u64 {
        self.shared.number()
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.number() == other.number() && self.graph == other.graph
    }
}

impl Eq for Condition {}

impl Hash for Condition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.graph.hash(state);
        self.number().hash(state);
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Condition({})", self.number())
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "condition {}", self.number())
    }
}

impl FixedArgument<'_, ConditionalHandle> for &Condition {}

impl Argument<'_, ConditionalHandle> for &Condition {
    fn value(self) -> ConditionalHandle {
        self.handle()
    }
}

// SAFETY: the handle is one value, and no address.
unsafe impl<'a> KernelArg<'a> for &Condition {
    fn add_to(self, params: &mut Params<'a>) {
        params.push(self.handle());
    }
}

impl GraphGuard<'_> {
    /// Refuses a graph that spans several contexts, for conditions and what is made of them.
    pub(crate) fn ensure_one_context(&self) -> Result<()> {
        if self.is_wide() { Err(ConditionError::SeveralContexts.into()) } else { Ok(()) }
    }

    /// Makes the conditions of the hierarchy once more, in the same order, for a graph that nobody
    /// else knows. Returns whether each has the handle there by which the kernels here know it.
    pub(crate) fn repeat_conditions(&self, graph: CUgraph) -> Result<bool> {
        for entry in self.conditions.iter() {
            if self.create_condition(graph, entry.default)? != entry.raw {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes a condition of a graph that is locked, or that nobody else knows.
    fn create_condition(&self, graph: CUgraph, default: Option<u32>) -> Result<u64> {
        let flags = if default.is_some() { cuda_sys::CU_GRAPH_COND_ASSIGN_DEFAULT } else { 0 };
        let mut raw = 0;
        // SAFETY: graph and context are live, nobody else uses the graph, and the out pointer is
        // valid.
        let result = unsafe {
            self.driver().cuGraphConditionalHandleCreate(
                &raw mut raw,
                graph,
                self.context().as_raw(),
                default.unwrap_or(0),
                flags,
            )
        };
        self.answer(Call::cuGraphConditionalHandleCreate, result.map_err(cuda_handles::Error::from)?)?;
        Ok(raw)
    }

    /// The conditional node of a condition, if it exists.
    pub(crate) fn node_of(&self, entry: &ConditionEntry) -> Option<NodeId> {
        entry.node.filter(|id| self.record(*id).is_some())
    }

    /// The kernel nodes that have the handle of a condition.
    pub(crate) fn setters(&self, number: u64) -> impl Iterator<Item = NodeId> + '_ {
        self.conditions.setters(number).filter_map(|index| self.id(index))
    }

    /// Refuses the handle of a condition that is not one of this hierarchy, or no longer is.
    pub(crate) fn ensure_own(&self, handle: ConditionalHandle, kernel: &str) -> Result<()> {
        if handle.graph() != self.number() || self.conditions.find(handle.number()).is_none() {
            return Err(Error::Condition(ConditionError::ForeignCondition { node: kernel.into() }));
        }
        Ok(())
    }

    /// Handles of the conditions that a kernel sets which is no node of the graph yet: no other
    /// condition takes their place meanwhile. Refuses handles as [`ensure_own`](Self::ensure_own).
    pub(crate) fn hold_conditions(
        &mut self,
        handles: &[ConditionalHandle],
        kernel: &str,
    ) -> Result<Vec<Arc<Handles>>> {
        handles.iter().try_for_each(|handle| self.ensure_own(*handle, kernel))?;
        Ok(handles.iter().filter_map(|handle| self.conditions.hold(handle.number())).collect())
    }

    /// Refuses to instantiate a graph with a condition that no node uses.
    pub(crate) fn ensure_conditions_used(&self) -> Result<()> {
        for entry in self.conditions.iter() {
            if self.node_of(entry).is_none() {
                let mut setters: Vec<String> =
                    self.setters(entry.number).map(|id| self.name(id).into_string()).collect();
                setters.sort_unstable();
                return Err(Error::Condition(ConditionError::UnusedCondition {
                    number: entry.number,
                    default: entry.default,
                    setters,
                }));
            }
        }
        Ok(())
    }
}

/// Refuses a kind of conditional nodes that the driver does not have.
pub(crate) fn ensure_conditionals(kind: ConditionalKind, context: &Context) -> Result<()> {
    let feature = match kind {
        ConditionalKind::If | ConditionalKind::While => Feature::Conditional,
        ConditionalKind::IfElse => Feature::IfElse,
        ConditionalKind::Switch => Feature::Switch,
    };
    let version = if by_default::host_decides() { Version::BASELINE } else { context.driver().version() };
    Ok(version.ensure(feature)?)
}
