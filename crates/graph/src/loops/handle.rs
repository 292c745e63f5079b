//! Handles of ready-made loops and branches.

use core::ops::Deref;

use cuda_handles::{Buffer, Slice, Stream};
use smallvec::SmallVec;

use crate::error::Result;
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::node::WhileNode;

/// The nodes that decide about a conditional node.
pub(super) type Deciders = SmallVec<[Node; 2]>;

/// Names the deciding nodes after their conditional node.
pub(super) fn name_deciders(deciders: &[Node], node: &Node) {
    let name = format!("decides about {}", node.name());
    deciders.iter().for_each(|decider| decider.set_name(name.clone()));
}

/// The methods that loops and branches have in common.
macro_rules! ready_made {
    ([$($parameters:tt)*] $name:ty) => {
        impl<$($parameters)*> $name {
            /// Gives it a name for people; see [`Node::named`]. The library's deciding nodes are
            /// named after it.
            pub fn named(self, name: impl Into<String>) -> Self {
                self.node.set_name(name.into());
                name_deciders(&self.deciders, &self.node);
                self
            }

            /// The value returned by the closure that filled the body; for a branch with two
            /// bodies, both.
            pub fn inside(&self) -> &R {
                &self.inside
            }

            /// Returns [`inside`](Self::inside), and gives up the handle.
            pub fn into_inside(self) -> R {
                self.inside
            }
        }
    };
}

/// The body of a ready-made loop while it is filled: a [`Graph`] that knows the number of the
/// round.
///
/// It dereferences to the graph, so nodes are added as anywhere: `body.root().launch(…)`. Nodes
/// added while the loop is built come before the library's node that decides about the next round;
/// see [`Frontier::while_loop`](crate::Frontier::while_loop).
#[derive(Clone, Debug)]
pub struct LoopBody {
    pub(super) graph: Graph,
    pub(super) rounds: Buffer<u64>,
}

impl LoopBody {
    /// The number of rounds done, for kernels of the body to read: 0 in the first round.
    #[must_use]
    pub fn rounds_done(&self) -> Slice<'_, u64> {
        self.rounds.as_slice()
    }
}

impl Deref for LoopBody {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        &self.graph
    }
}

/// A ready-made loop: its [`WhileNode`], the number of rounds it has run, and the value of the
/// closure that filled it.
///
/// Made by [`Frontier::while_loop`](crate::Frontier::while_loop) and
/// [`do_while_loop`](crate::Frontier::do_while_loop). It dereferences to the node, so
/// `relax.then()` continues behind the loop.
#[derive(Clone, Debug)]
pub struct Loop<R = ()> {
    pub(super) node: WhileNode,
    pub(super) deciders: Deciders,
    pub(super) rounds: Buffer<u64>,
    pub(super) inside: R,
}

ready_made!([R] Loop<R>);

impl<R> Loop<R> {
    /// The number of rounds done since the loop was last entered, for kernels and copies to read:
    /// by nodes after the loop, in its body, or on the stream after a launch. It is reset to 0 each
    /// time the loop is entered. Before the first launch it is undefined.
    #[must_use]
    pub fn rounds_done(&self) -> Slice<'_, u64> {
        self.rounds.as_slice()
    }

    /// The number of rounds done since the loop was last entered. **Waits** for the work on
    /// `stream`: the stream of the launch, or one that waits for it.
    ///
    /// Calls the driver as [`Slice::read_blocking`] does.
    ///
    /// # Errors
    /// The driver fails, or an earlier launch on the stream did.
    pub fn rounds_done_blocking(&self, stream: &Stream) -> Result<u64> {
        Ok(self.rounds.read_blocking(stream)?.first().copied().unwrap_or_default())
    }
}

impl<R> Deref for Loop<R> {
    type Target = WhileNode;

    fn deref(&self) -> &WhileNode {
        &self.node
    }
}

/// A ready-made branch: its node, an [`IfNode`](crate::IfNode) or
/// [`IfElseNode`](crate::IfElseNode), and the values of the closures that filled it.
///
/// Made by [`Frontier::if_then`](crate::Frontier::if_then) and
/// [`if_then_else`](crate::Frontier::if_then_else). It dereferences to the node.
#[derive(Clone, Debug)]
pub struct Branch<N, R = ()> {
    pub(super) node: N,
    pub(super) deciders: Deciders,
    pub(super) inside: R,
}

ready_made!([N: Deref<Target = Node>, R] Branch<N, R>);

impl<N, R> Deref for Branch<N, R> {
    type Target = N;

    fn deref(&self) -> &N {
        &self.node
    }
}
