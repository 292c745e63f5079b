//! What comes of a ready-made loop or branch.

use core::ops::Deref;

use cuda_handles::{Buffer, Slice, Stream};
use smallvec::SmallVec;

use crate::error::Result;
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::node::WhileNode;

/// The kernels by which a conditional node goes.
pub(super) type Deciders = SmallVec<[Node; 2]>;

/// Names the kernels that decide about a node after it.
pub(super) fn name_deciders(deciders: &[Node], node: &Node) {
    let name = format!("decides about {}", node.name());
    deciders.iter().for_each(|decider| decider.set_name(name.clone()));
}

/// What a ready-made loop and a ready-made branch have alike.
macro_rules! ready_made {
    ([$($parameters:tt)*] $name:ty) => {
        impl<$($parameters)*> $name {
            /// The same with a name for people; see [`Node::named`]. The library's own nodes then
            /// are called as what decides about that.
            pub fn named(self, name: impl Into<String>) -> Self {
                self.node.set_name(name.into());
                name_deciders(&self.deciders, &self.node);
                self
            }

            /// What the closure gave that filled the body; of a branch with two bodies, both.
            pub fn inside(&self) -> &R {
                &self.inside
            }

            /// [`inside`](Self::inside), with the handle given up.
            pub fn into_inside(self) -> R {
                self.inside
            }
        }
    };
}

/// The body of a ready-made loop, to be filled: a graph, which knows the number of the round.
///
/// Nodes of the body come before the library's own that decides about the next round, if they are
/// added while the loop is built; see [`Frontier::while_loop`](crate::Frontier::while_loop).
#[derive(Clone, Debug)]
pub struct LoopBody {
    pub(super) graph: Graph,
    pub(super) rounds: Buffer<u64>,
}

impl LoopBody {
    /// The number of rounds done, for kernels of the body to read: in the first round 0.
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

/// A ready-made loop: its [`WhileNode`], the number of rounds it has run, and what the closure gave
/// that filled it.
#[derive(Clone, Debug)]
pub struct Loop<R = ()> {
    pub(super) node: WhileNode,
    pub(super) deciders: Deciders,
    pub(super) rounds: Buffer<u64>,
    pub(super) inside: R,
}

ready_made!([R] Loop<R>);

impl<R> Loop<R> {
    /// The number of rounds done since the loop was entered last, for kernels and copies to read:
    /// nodes after the loop, those of the body, or work on the stream after a launch. It is set to
    /// 0 each time the loop is entered; before the first launch, it is whatever the memory held.
    #[must_use]
    pub fn rounds_done(&self) -> Slice<'_, u64> {
        self.rounds.as_slice()
    }

    /// The number of rounds done since the loop was entered last. **Waits** for what is on the
    /// stream, which is to be that of the launch, or one that waits for it.
    ///
    /// Stands on what [`Slice::read_blocking`] does.
    ///
    /// # Errors
    /// What the driver answers.
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

/// A ready-made branch: its node, an [`IfNode`](crate::IfNode) or an
/// [`IfElseNode`](crate::IfElseNode), and what the closures gave that filled it.
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
