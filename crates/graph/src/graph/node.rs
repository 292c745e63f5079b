//! A node of any type, and what all types have.

use core::fmt;

use cuda_sys::{CUgraphNodeParams, Call};

use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::node_kind::NodeKind;
use crate::node_name::NodeName;
use crate::state::NodeRecord;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::wording::Named;
use cuda_handles::Error as HandleError;

/// A node of a graph, of any type.
///
/// The handle keeps the graph alive. It may outlive the node: one that was removed says so
/// ([`is_removed`](Self::is_removed)), is an error wherever a node is needed, and never stands for
/// another node. Handles are equal if they are of the same node.
///
/// The types of nodes dereference to this one; [`KernelNode`](crate::KernelNode) and the others are
/// made of it by `try_from`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Node {
    graph: Graph,
    id: NodeId,
    kind: NodeKind,
}

impl Node {
    #[inline]
    pub(crate) fn new(graph: Graph, id: NodeId, kind: NodeKind) -> Self {
        Self { graph, id, kind }
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What the node does.
    #[doc(alias = "cuGraphNodeGetType")]
    #[must_use]
    pub fn kind(&self) -> NodeKind {
        self.kind
    }

    /// The name given by [`named`](Self::named); without one, kind and number in the graph, and the
    /// kernel of a kernel node, as in `kernel#3 saxpy`. Of a node that was removed, the name that
    /// it had, if it is one of the last thousand of its graph. Kind and number also inside a host
    /// function, while another thread works on the graph.
    #[must_use]
    pub fn name(&self) -> String {
        let given =
            self.graph.look().ok().and_then(|guard| Some(guard.record(self.id)?.display_name(self.id)));
        let given = given.or_else(|| self.graph.name_of_removed(self.id).map(NodeName::into_string));
        given.unwrap_or_else(|| self.default_name())
    }

    /// What the node does, in one line for people, as in `copy 4096 B device -> pinned`; empty for
    /// a node whose [kind](Self::kind) says all.
    ///
    /// # Errors
    /// The node was removed.
    pub fn describe(&self) -> Result<String> {
        self.node_params().map(|node_params| node_params.summary())
    }

    /// The same node with a name for people: it stands in errors and pictures. Names need not be
    /// unique. Inside a host function, while another thread works on the graph, it stays as it was.
    pub fn named(self, name: impl Into<String>) -> Self {
        self.set_name(name.into());
        self
    }

    pub(crate) fn set_name(&self, name: String) {
        let name = name.into_boxed_str();
        if let Ok(mut guard) = self.graph.look() {
            // Under the lock, but no owner: a name drops nothing else.
            let _before = guard.record_mut(self.id).and_then(|record| record.name.replace(name));
        }
    }

    fn default_name(&self) -> String {
        format!("{}#{}", self.kind, self.id.number)
    }

    /// Whether the node was removed from its graph. A forked child, which can use no graph, is told
    /// `false`, and so is a host function while another thread works on the graph.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.graph.look().is_ok_and(|guard| guard.record(self.id).is_none())
    }

    /// Gives the node other parameters of its kind by one driver call, and its row what goes with
    /// them. All that can fail comes before the call. If it fails, the node is as it was.
    ///
    /// Stands on `cuGraphNodeSetParams`, CUDA 12.2.
    pub(crate) fn replace(
        &self,
        mut node_params: NodeParams,
        mut owners: Owners,
        params: &mut CUgraphNodeParams,
    ) -> Result<()> {
        // As arguments, `node_params` and `owners` are dropped after the lock on every way out: the
        // new ones, or those that they took the place of.
        let mut guard = self.graph.enter()?;
        self.replace_under(&mut guard, &mut node_params, &mut owners, params)
    }

    /// [`replace`](Self::replace) for who has the graph's lock, since what to do depends on the
    /// row. After success detail and owners are those before; they are the caller's to drop, after
    /// the lock.
    #[inline]
    pub(crate) fn replace_under(
        &self,
        guard: &mut GraphGuard<'_>,
        node_params: &mut NodeParams,
        owners: &mut Owners,
        params: &mut CUgraphNodeParams,
    ) -> Result<()> {
        let raw = guard.record(self.id).ok_or_else(|| self.removed())?.raw.0;
        guard.ensure_may_hold(self.graph.subgraph(), node_params)?;
        guard.ensure_own_memory(owners, node_params)?;
        guard.retain_if_adopted()?;
        // SAFETY: the table says that the node is live and of this graph, whose lock is held; the
        // parameters are complete for its type, and what they point to outlives the call.
        let result = unsafe { guard.driver().cuGraphNodeSetParams(raw, params) };
        guard.answer(Call::cuGraphNodeSetParams, result)?;
        if let Some(record) = guard.record_mut(self.id) {
            core::mem::swap(&mut record.node_params, node_params);
        }
        guard.swap_owners(self.id, owners);
        Ok(())
    }

    /// The error of using the node after its removal.
    pub(crate) fn removed(&self) -> Error {
        let known = self.graph.name_of_removed(self.id);
        Error::Removed { node: known.unwrap_or_else(|| self.default_name().into()) }
    }

    /// What was given at creation.
    pub(crate) fn node_params(&self) -> Result<NodeParams> {
        self.graph
            .look()?
            .record(self.id)
            .map(|record| record.node_params.clone())
            .ok_or_else(|| self.removed())
    }
}

impl Node {
    /// Names the node in an error about a thing of another context that it was to get.
    pub(crate) fn getting<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| match error {
            Error::Handles(HandleError::WrongContext(mut wrong)) => {
                wrong.what = format!("{} for node `{}`", wrong.what, Named(&self.name())).into();
                Error::Handles(HandleError::WrongContext(wrong))
            }
            other => other,
        })
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Node({})", self.default_name())
    }
}

impl fmt::Display for Node {
    /// The node's [name](Node::name).
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name())
    }
}

impl NodeRecord {
    pub(crate) fn display_name(&self, id: NodeId) -> String {
        match (&self.name, &self.node_params) {
            (Some(name), _) => name.to_string(),
            (None, NodeParams::Kernel { kernel, .. }) => format!("kernel#{} {}", id.number, kernel.name()),
            (None, node_params) => format!("{}#{}", node_params.kind(), id.number),
        }
    }
}

/// A handle of nodes of one kind.
macro_rules! typed {
    ($(#[$doc:meta])* $name:ident, $kind:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash)]
        pub struct $name(crate::graph::node::Node);

        impl $name {
            #[inline]
            pub(crate) fn wrap(node: crate::graph::node::Node) -> Self {
                Self(node)
            }

            /// The same node with a name for people; see [`Node::named`](crate::Node::named).
            pub fn named(self, name: impl Into<String>) -> Self {
                self.0.set_name(name.into());
                self
            }
        }

        impl core::ops::Deref for $name {
            type Target = crate::graph::node::Node;

            fn deref(&self) -> &crate::graph::node::Node {
                &self.0
            }
        }

        impl From<$name> for crate::graph::node::Node {
            fn from(node: $name) -> Self {
                node.0
            }
        }

        impl TryFrom<crate::graph::node::Node> for $name {
            /// The node itself, where it is of another kind.
            type Error = crate::graph::node::Node;

            fn try_from(node: crate::graph::node::Node) -> Result<Self, crate::graph::node::Node> {
                if node.kind() == crate::NodeKind::$kind { Ok(Self(node)) } else { Err(node) }
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Debug::fmt(&self.0, formatter)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(&self.0, formatter)
            }
        }
    };
}

pub(crate) use typed;
