//! Conditions: the numbers in a graph that kernels set, and by which conditional nodes go.

pub(crate) mod body;
pub(crate) mod kernels;
pub(crate) mod set_kernel;

use core::fmt;
use core::hash::{Hash, Hasher};
use std::sync::Arc;

use cuda_launch::{Argument, ConditionalHandle, KernelArg, Params};
use cuda_sys::Call;

use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::conditions::{ConditionEntry, Handles};
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::params::ConditionalKind;
use cuda_handles::Context;
use cuda_sys::Version;

/// A condition of a graph: a 32-bit number, set by kernels of a launch, by which one conditional
/// node goes.
///
/// Made by [`Graph::condition`] or [`Graph::condition_with_default`], given to kernels among their
/// arguments (see [`ConditionalHandle`]) and to the conditional node. All of these are nodes of one
/// graph, of the bodies in it, and of graphs embedded in these; another graph's condition is the
/// error [`Error::ForeignCondition`]. Kernels that set it come before the node in the order of the
/// graph; in the body of a loop they decide about the next round.
///
/// The handle keeps the graph alive. Handles are equal if they are of the same condition.
///
/// ```no_run
/// # cuda_launch::kernel! {
/// #     unsafe in cuda_handles::Image::Ptx("");
/// #     fn step(values: InOut<f32>, go_on: ConditionalHandle);
/// # }
/// # fn main() {}
/// # fn example(
/// #     graph: &cuda_graph::Graph, step: &step, values: &cuda_handles::Buffer<f32>
/// # ) -> cuda_graph::Result<()> {
/// let go_on = graph.condition_with_default(1)?;
/// let rounds = graph.root().while_node(&go_on)?;
/// rounds.body()?.root().launch(step, cuda_launch::per(1000, 256), (values, &go_on))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Condition {
    /// The root of the hierarchy.
    graph: Graph,
    raw: u64,
    default: Option<u32>,
    shared: Arc<Handles>,
}

impl Graph {
    /// A condition that keeps the value that was set last over the launches of an executable.
    ///
    /// What it starts with is not determined: drivers give a new executable what an ended one had,
    /// of this graph or another, as it is, and 0 where there was none. So let a kernel set it in
    /// front of its node, or take one [with a default](Self::condition_with_default).
    ///
    /// What the driver has for it cannot be given back: it has to be used by a conditional node, or
    /// the graph cannot be instantiated ([`Error::UnusedCondition`]). A condition whose handles are
    /// all gone and that no node uses is used again for the next one with the same default.
    ///
    /// Stands on `cuGraphConditionalHandleCreate`, CUDA 12.3.
    ///
    /// # Errors
    /// An older driver, or what it answers.
    #[doc(alias = "cuGraphConditionalHandleCreate")]
    pub fn condition(&self) -> Result<Condition> {
        self.make_condition(None)
    }

    /// A condition that gets the value `default` each time the graph that its conditional node lies
    /// in begins: at each launch, or each time the body is entered.
    ///
    /// (The driver by itself sets it once a launch, so that a loop in a loop would run in the first
    /// round only. In a body, this library adds a kernel node that sets it, before the conditional
    /// node and before all kernels there that have the condition.)
    ///
    /// Stands on `cuGraphConditionalHandleCreate`, CUDA 12.3.
    ///
    /// # Errors
    /// As for [`condition`](Self::condition).
    #[doc(alias = "cuGraphConditionalHandleCreate")]
    #[doc(alias = "CU_GRAPH_COND_ASSIGN_DEFAULT")]
    pub fn condition_with_default(&self, default: u32) -> Result<Condition> {
        self.make_condition(Some(default))
    }

    fn make_condition(&self, default: Option<u32>) -> Result<Condition> {
        let mut guard = self.enter()?;
        let shared = guard.conditions.next_handles();
        let raw = match guard.reusable(default) {
            Some(raw) => raw,
            None => guard.create_condition(default)?,
        };
        guard.conditions.insert(raw, default, &shared);
        drop(guard);
        Ok(Condition { graph: self.at(SubgraphId::ROOT), raw, default, shared })
    }
}

impl Condition {
    /// The graph that it is a condition of; for one made on a body, or on a graph that is embedded,
    /// the outermost.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The value that it gets by itself.
    #[must_use]
    pub fn default_value(&self) -> Option<u32> {
        self.default
    }

    /// The conditional node that goes by it.
    ///
    /// # Errors
    /// The graph was moved.
    pub fn node(&self) -> Result<Option<Node>> {
        let guard = self.graph.look()?;
        let found = guard.conditions.find(self.number()).and_then(|entry| entry.node);
        let found = found
            .and_then(|id| guard.record(id).map(|record| (id, record.within, record.node_params.kind())));
        Ok(found.map(|(id, within, kind)| Node::new(self.graph.at(within), id, kind)))
    }

    /// The handle that kernels get.
    #[must_use]
    pub fn handle(&self) -> ConditionalHandle {
        // SAFETY: the driver gave it for the live graph of this number; numbers of conditions are
        // given once a graph; and what is added to a graph is compared.
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

impl Argument<'_, ConditionalHandle> for &Condition {
    fn value(self) -> ConditionalHandle {
        self.handle()
    }
}

// SAFETY: one value, and no address.
unsafe impl<'a> KernelArg<'a> for &Condition {
    fn add_to(self, params: &mut Params<'a>) {
        params.push(self.handle());
    }
}

impl GraphGuard<'_> {
    fn create_condition(&self, default: Option<u32>) -> Result<u64> {
        let flags = if default.is_some() { cuda_sys::CU_GRAPH_COND_ASSIGN_DEFAULT } else { 0 };
        let mut raw = 0;
        // SAFETY: graph and context are live, the graph is locked, and the out pointer is valid.
        let result = unsafe {
            self.driver().cuGraphConditionalHandleCreate(
                &raw mut raw,
                self.raw(),
                self.context().as_raw(),
                default.unwrap_or(0),
                flags,
            )
        };
        self.answer(Call::cuGraphConditionalHandleCreate, result.map_err(cuda_handles::Error::from)?)?;
        Ok(raw)
    }

    /// The conditional node of a condition, if it is there.
    pub(crate) fn node_of(&self, entry: &ConditionEntry) -> Option<NodeId> {
        entry.node.filter(|id| self.record(*id).is_some())
    }

    /// The kernels that have the handle of a condition.
    pub(crate) fn setters(&self, number: u64) -> impl Iterator<Item = NodeId> + '_ {
        self.conditions.setters(number).filter_map(|index| self.id(index))
    }

    /// Refuses the handle of a condition that is not one of this hierarchy, or not any more.
    pub(crate) fn ensure_own(&self, handle: ConditionalHandle, kernel: &str) -> Result<()> {
        if handle.graph() != self.number() || self.conditions.find(handle.number()).is_none() {
            return Err(Error::ForeignCondition { node: kernel.into() });
        }
        Ok(())
    }

    /// Refuses to instantiate where a condition has no node.
    pub(crate) fn ensure_conditions_used(&self) -> Result<()> {
        for entry in self.conditions.iter() {
            if self.node_of(entry).is_none() {
                let mut setters: Vec<String> =
                    self.setters(entry.number).map(|id| self.name(id).into_string()).collect();
                setters.sort_unstable();
                return Err(Error::UnusedCondition { number: entry.number, default: entry.default, setters });
            }
        }
        Ok(())
    }
}

/// Refuses a class of conditional nodes where the driver has none.
pub(crate) fn ensure_conditionals(class: ConditionalKind, context: &Context) -> Result<()> {
    let found = context.driver().version();
    let (what, needs) = match class {
        ConditionalKind::If | ConditionalKind::While => ("a conditional node", Version::new(12, 3)),
        ConditionalKind::IfElse => ("a conditional node with two bodies", Version::new(12, 8)),
        ConditionalKind::Switch => ("a switch", Version::new(12, 8)),
    };
    if found < needs { Err(Error::TooOld { what, needs, found }) } else { Ok(()) }
}
