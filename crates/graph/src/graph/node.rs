//! The node handle, common to all types of nodes.

use core::fmt;

use cuda_sys::{CUgraphNodeParams, Call};

use crate::error::{Error, NodeError, Result};
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
/// The handle keeps the graph alive. It may outlive the node: the handle of a removed node reports
/// that ([`is_removed`](Self::is_removed)), is refused wherever a node is needed, and never refers
/// to another node. Handles are equal if they refer to the same node.
///
/// The typed nodes, such as [`KernelNode`](crate::KernelNode), dereference to this type and are
/// made of it by `try_from`.
#[derive(Clone, PartialEq, Eq, Hash)]
#[doc(alias = "cudaGraphNode_t")]
#[doc(alias = "CUgraphNode")]
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

    /// The graph that the node is in.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The kind of the node.
    #[doc(alias = "cuGraphNodeGetType")]
    #[must_use]
    #[doc(alias = "cudaGraphNodeGetType")]
    pub fn kind(&self) -> NodeKind {
        self.kind
    }

    /// The name given by [`named`](Self::named). Without one, the kind, a number, and for kernel
    /// nodes the kernel, as in `kernel#3 saxpy`.
    ///
    /// The name of a removed node is remembered for the last thousand nodes removed from the
    /// graph's hierarchy. Older nodes go by kind and number, and so does every node inside a host
    /// function while another thread works on the graph.
    #[must_use]
    pub fn name(&self) -> String {
        let given =
            self.graph.look().ok().and_then(|guard| Some(guard.record(self.id)?.display_name(self.id)));
        let given = given.or_else(|| self.graph.name_of_removed(self.id).map(NodeName::into_string));
        given.unwrap_or_else(|| self.default_name())
    }

    /// The parameters of the node in one line of text, as in `copy 4096 B device -> pinned`; empty
    /// for a node whose [kind](Self::kind) says everything.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    pub fn describe(&self) -> Result<String> {
        self.node_params().map(|node_params| node_params.summary())
    }

    /// Names the node, for errors and pictures. Names need not be unique. Inside a host function,
    /// while another thread works on the graph, the name stays as it was.
    pub fn named(self, name: impl Into<String>) -> Self {
        self.set_name(name.into());
        self
    }

    pub(crate) fn set_name(&self, name: String) {
        let name = name.into_boxed_str();
        if let Ok(mut guard) = self.graph.look() {
            // Dropped under the lock, but a string drops nothing else.
            let _before = guard.record_mut(self.id).and_then(|record| record.name.replace(name));
        }
    }

    fn default_name(&self) -> String {
        format!("{}#{}", self.kind, self.id.number)
    }

    /// Whether the node was removed from its graph. Also `false` in a forked child, which cannot
    /// use graphs, and in a host function while another thread works on the graph.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.graph.look().is_ok_and(|guard| guard.record(self.id).is_none())
    }

    /// Replaces the parameters of the node by one driver call, and the owners in its record.
    /// Everything that can fail comes before the call; if the call fails, the node is as it was.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    pub(crate) fn replace(
        &self,
        mut node_params: NodeParams,
        mut owners: Owners,
        params: &mut CUgraphNodeParams,
    ) -> Result<()> {
        // Parameters and owners are arguments, so they are dropped after the guard on every path:
        // the new ones, or the ones that they replaced.
        let mut guard = self.graph.enter()?;
        self.replace_under(&mut guard, &mut node_params, &mut owners, params)
    }

    /// [`replace`](Self::replace) for a caller that holds the graph's lock. On success
    /// `node_params` and `owners` are those before, for the caller to drop after the lock.
    #[inline]
    pub(crate) fn replace_under(
        &self,
        guard: &mut GraphGuard<'_>,
        node_params: &mut NodeParams,
        owners: &mut Owners,
        params: &mut CUgraphNodeParams,
    ) -> Result<()> {
        let raw = guard.record(self.id).ok_or_else(|| self.removed())?.raw.0;
        guard.ensure_not_bound(self.id)?;
        guard.ensure_may_hold(self.graph.subgraph(), node_params)?;
        guard.ensure_own_memory(owners, node_params)?;
        guard.retain_if_adopted()?;
        // SAFETY: the record says that the node is live and in this graph, whose lock is held. The
        // parameters are complete for its type, and everything that they point to outlives the
        // call.
        let result = unsafe { guard.driver().cuGraphNodeSetParams(raw, params) };
        guard.answer(Call::cuGraphNodeSetParams, result)?;
        guard.changes.note(self.id);
        if let Some(record) = guard.record_mut(self.id) {
            core::mem::swap(&mut record.node_params, node_params);
        }
        guard.swap_owners(self.id, owners);
        Ok(())
    }

    /// Replaces a part of the parameters under one lock, as another thread may set the node
    /// meanwhile. `change` changes copies of parameters and owners. `describe` passes the driver's
    /// form of the new parameters on.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut NodeParams, &mut Owners) -> Result<()>,
        describe: impl FnOnce(&NodeParams, &mut dyn FnMut(&mut CUgraphNodeParams) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        // Declared before the guard, so that what is replaced is dropped after the lock.
        let (mut node_params, mut owners, described);
        let mut guard = self.graph.enter()?;
        guard.ensure_not_bound(self.id)?;
        let record = guard.record(self.id).ok_or_else(|| self.removed())?;
        node_params = record.node_params.clone();
        owners = guard.used_by(record).cloned().collect();
        change(&mut node_params, &mut owners)?;
        described = node_params.clone();
        describe(&described, &mut |params| {
            self.replace_under(&mut guard, &mut node_params, &mut owners, params)
        })
    }

    /// The error of using the node after its removal.
    pub(crate) fn removed(&self) -> Error {
        let known = self.graph.name_of_removed(self.id);
        Error::Node(NodeError::Removed { node: known.unwrap_or_else(|| self.default_name().into()) })
    }

    /// A copy of the parameters in the node's record.
    pub(crate) fn node_params(&self) -> Result<NodeParams> {
        self.graph
            .look()?
            .record(self.id)
            .map(|record| record.node_params.clone())
            .ok_or_else(|| self.removed())
    }
}

impl Node {
    /// Adds the node's name to an error about an argument of another context.
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
