//! Ready-made loops and branches: kernels of this library compare a number in memory and decide.
//!
//! | File | Contents |
//! | --- | --- |
//! | `mod.rs` | `Frontier::while_loop`, `if_then` and so on |
//! | [`test`](mod@test) | tests of numbers in memory |
//! | [`handle`] | the handles: `Loop`, `Branch`, `LoopBody` |
//! | [`builder`] | adds the nodes, all or nothing |
//! | [`decider`] | the kernels that decide |
//! | [`placeholder`] | nodes in place of those that the driver lacks |
//! | [`host`] | the host loop, which runs graphs with placeholders |

mod builder;
mod decider;
mod handle;
pub(crate) mod host;
mod placeholder;
mod test;

pub use handle::{Branch, Loop, LoopBody};
pub use test::{Repeat, Test, Testable};

use builder::{ConditionalBuilder, FillError};
use decider::{Decider, RoundCounter};

use crate::build::frontier::Frontier;
use crate::error::{Error, LoopError, Result};
use crate::graph::Graph;
use crate::node::{IfElseNode, IfNode, WhileNode};
use crate::state::loop_control::DecisionPoint;
use crate::state::params::ConditionalKind;

impl Frontier<'_> {
    /// Adds a loop that runs its body while a number in memory passes a test, perhaps never. The
    /// closure fills the body.
    ///
    /// ```no_run
    /// # use cuda_graph::Test;
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     fn step(values: InOut<f32>, change: InOut<f32>);
    /// # }
    /// # fn main() {}
    /// # fn example(
    /// #     graph: &cuda_graph::Graph, stream: &cuda_handles::Stream, step: &step,
    /// #     values: &cuda_handles::Buffer<f32>, change: &cuda_handles::Buffer<f32>,
    /// # ) -> cuda_graph::Result<()> {
    /// let going = Test::greater(change, 1e-6).limit(1000);
    /// let relax = graph.root().fill(change, 1.0)?.then().while_loop(going, |body| {
    ///     body.root().launch(step, per(1000, 256), (values, change))
    /// })?;
    /// graph.instantiate()?.launch(stream)?;
    /// println!("{} rounds", relax.rounds_done_blocking(stream)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// One kernel of the library compares the number before the loop, and another one after each
    /// round, behind everything that the closure added to the body. Within the body of another
    /// loop, the loop starts anew in each round of that. [`Loop::inside`] has what the closure
    /// returns; a closure that ends with adding a node needs nothing else. The body holds [what
    /// bodies can hold](crate::WhileNode::body). Nodes that are added to it after the closure has
    /// returned run concurrently with the decision or after it ([`Graph::after`]), and do not
    /// affect it.
    ///
    /// The example `heat_loop` is a whole program around such a loop.
    ///
    /// May **wait** for the device, as it allocates memory for the [count of
    /// rounds](Loop::rounds_done). Calls `cuGraphConditionalHandleCreate` and `cuGraphAddNode`
    /// (CUDA 12.3).
    ///
    /// With an older driver the loop can be built all the same, as an empty node with a graph of
    /// its own (`cuGraphCreate`). The host can [run it](Graph::instantiate_with_fallback);
    /// everything else refuses it ([`LoopError::NeedsHost`]).
    ///
    /// # Errors
    /// - The closure fails.
    /// - [`LoopError::NothingToTest`]: the memory has no elements. Or it is of another context.
    /// - [`Error::TooOld`]: the driver lacks the node, and other code has the graph.
    /// - The frontier has edges other than full ones, or the closure has removed the loop.
    /// - The driver fails.
    ///
    /// Whatever fails, everything added here is removed again, also if the closure panics; what the
    /// closure has done elsewhere stays. From a graph with memory nodes the driver removes nothing:
    /// there the graph is [broken](Error::Broken) if the closure fails. The condition is kept for
    /// the next ready-made loop or branch of the graph, as the driver cannot destroy conditions.
    /// Until it is used, the graph cannot be instantiated
    /// ([`ConditionError::UnusedCondition`](crate::ConditionError::UnusedCondition)).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_WHILE")]
    #[doc(alias = "cudaGraphCondTypeWhile")]
    #[doc(alias = "conditional node")]
    pub fn while_loop<'m, R, E: From<Error>>(
        &self,
        going: impl Into<Repeat<'m>>,
        fill: impl FnOnce(&LoopBody) -> Result<R, E>,
    ) -> Result<Loop<R>, E> {
        self.repeat(DecisionPoint::BeforeWhile, going.into(), fill)
    }

    /// Adds a loop that runs its body once, and then again while a number in memory passes a test;
    /// see [`while_loop`](Self::while_loop). It suits a number that the body itself computes.
    ///
    /// # Errors
    /// As for [`while_loop`](Self::while_loop). [`LoopError::NoRounds`]: the limit is 0 rounds, but
    /// there is at least one.
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_WHILE")]
    #[doc(alias = "cudaGraphCondTypeWhile")]
    #[doc(alias = "conditional node")]
    pub fn do_while_loop<'m, R, E: From<Error>>(
        &self,
        going: impl Into<Repeat<'m>>,
        fill: impl FnOnce(&LoopBody) -> Result<R, E>,
    ) -> Result<Loop<R>, E> {
        self.repeat(DecisionPoint::BeforeDoWhile, going.into(), fill)
    }

    /// Adds a branch that runs its body if a number in memory passes a test. The closure fills the
    /// body.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Test};
    /// # fn example(
    /// #     graph: &Graph, errors: &cuda_handles::Buffer<u32>, values: &cuda_handles::Buffer<f32>
    /// # ) -> cuda_graph::Result<()> {
    /// graph.root().if_then(Test::at_least(errors, 10), |body| body.root().fill(values, 0.0))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// One kernel of the library compares the number before the branch. [`Branch::inside`] has what
    /// the closure returns.
    ///
    /// Calls `cuGraphConditionalHandleCreate` and `cuGraphAddNode` (CUDA 12.3). With an older
    /// driver the host can run it, as a [loop](Self::while_loop).
    ///
    /// # Errors
    /// As for [`while_loop`](Self::while_loop).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    #[doc(alias = "cudaGraphCondTypeIf")]
    #[doc(alias = "conditional node")]
    pub fn if_then<R, E: From<Error>>(
        &self,
        test: Test<'_>,
        fill: impl FnOnce(&Graph) -> Result<R, E>,
    ) -> Result<Branch<IfNode, R>, E> {
        let builder = self.branch(ConditionalKind::If, test)?;
        let filled = fill_body(&builder, 0, fill);
        let (node, deciders, inside) = builder.finish(filled)?;
        Ok(Branch { node: IfNode::wrap(node), deciders, inside })
    }

    /// Adds a branch that runs one of two bodies: the first if a number in memory passes a test,
    /// otherwise the second. Two closures fill them, one after the other.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Test};
    /// # fn example(
    /// #     graph: &Graph, middle: &cuda_handles::Buffer<f64>, low: &cuda_handles::Buffer<f64>,
    /// #     high: &cuda_handles::Buffer<f64>
    /// # ) -> cuda_graph::Result<()> {
    /// let is_below = Test::less(middle, 0.0);
    /// graph.root().if_then_else(
    ///     is_below,
    ///     |then| then.root().copy(middle, low),
    ///     |otherwise| otherwise.root().copy(middle, high),
    /// )?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Otherwise as [`if_then`](Self::if_then). The device decides from CUDA 12.8 on.
    ///
    /// # Errors
    /// As for [`while_loop`](Self::while_loop).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    #[doc(alias = "cudaGraphCondTypeIf")]
    #[doc(alias = "conditional node")]
    pub fn if_then_else<R, S, E: From<Error>>(
        &self,
        test: Test<'_>,
        then: impl FnOnce(&Graph) -> Result<R, E>,
        otherwise: impl FnOnce(&Graph) -> Result<S, E>,
    ) -> Result<Branch<IfElseNode, (R, S)>, E> {
        let builder = self.branch(ConditionalKind::IfElse, test)?;
        let filled =
            fill_body(&builder, 0, then).and_then(|first| Ok((first, fill_body(&builder, 1, otherwise)?)));
        let (node, deciders, inside) = builder.finish(filled)?;
        Ok(Branch { node: IfElseNode::wrap(node), deciders, inside })
    }

    fn branch(&self, kind: ConditionalKind, test: Test<'_>) -> Result<ConditionalBuilder<'_>> {
        let decider = Decider::of(self.graph(), test, self.needs_placeholder(kind)?)?;
        ConditionalBuilder::begin(self, kind, &decider, DecisionPoint::Branch)
    }

    fn repeat<R, E: From<Error>>(
        &self,
        point: DecisionPoint,
        Repeat { test, limit }: Repeat<'_>,
        fill: impl FnOnce(&LoopBody) -> Result<R, E>,
    ) -> Result<Loop<R>, E> {
        if point == DecisionPoint::BeforeDoWhile && limit == 0 {
            return Err(Error::Loop(LoopError::NoRounds).into());
        }
        let decider = Decider::of(self.graph(), test, self.needs_placeholder(ConditionalKind::While)?)?;
        let rounds = self.graph().context().alloc_blocking::<u64>(1).map_err(Error::from)?;
        let decider = decider.counting(RoundCounter { count: rounds.clone(), limit });
        let mut builder = ConditionalBuilder::begin(self, ConditionalKind::While, &decider, point)?;
        let filled = fill_loop(&mut builder, &decider, &rounds, fill);
        let (node, deciders, inside) = builder.finish(filled)?;
        Ok(Loop { node: WhileNode::wrap(node), deciders, rounds, inside })
    }
}

fn fill_body<R, E>(
    builder: &ConditionalBuilder<'_>,
    index: usize,
    fill: impl FnOnce(&Graph) -> Result<R, E>,
) -> Result<R, FillError<E>> {
    fill(&builder.body(index)?).map_err(FillError::Closure)
}

fn fill_loop<R, E>(
    builder: &mut ConditionalBuilder<'_>,
    decider: &Decider<'_>,
    rounds: &cuda_handles::Buffer<u64>,
    fill: impl FnOnce(&LoopBody) -> Result<R, E>,
) -> Result<R, FillError<E>> {
    let body = LoopBody { graph: builder.body(0)?, rounds: rounds.clone() };
    let inside = fill(&body).map_err(FillError::Closure)?;
    builder.decide_after(&body, decider)?;
    Ok(inside)
}
