//! Loops and branches without device code of the user's: the library's own kernels look at a number
//! in memory and decide.

mod builder;
mod decider;
mod handle;
pub(crate) mod host;
mod placeholder;
mod ready_made;
mod test;

pub use handle::{Branch, Loop, LoopBody};
pub use test::{Repeat, Test, Testable};

use builder::{ConditionalBuilder, FillError};
use cuda_handles::NodeMemory;
use decider::{Decider, RoundCounter};

use crate::build::frontier::Frontier;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::node::{IfElseNode, IfNode, WhileNode};
use crate::state::loop_control::DecisionPoint;
use crate::state::params::ConditionalKind;

impl Frontier<'_> {
    /// Adds a loop that runs its body as long as a number in memory passes a test, which may be no
    /// time. The closure fills the body.
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
    /// #     graph: &cuda_graph::Graph, stream: &cuda_handles::Stream, step: &step, values: &cuda_handles::Buffer<f32>,
    /// #     change: &cuda_handles::Buffer<f32>,
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
    /// The number is looked at when the graph gets to the loop, and again after each round: by one
    /// kernel of the library's before the loop, and one in the body, which comes after all that the
    /// closure has put there. In a body of another loop, it begins anew in each round of that. What
    /// the closure returns is in [`Loop::inside`]; if it ends with adding a node, nothing more need
    /// be written. The body can be filled with [what bodies hold](crate::WhileNode::body). What is
    /// added to it after the closure has returned runs beside the decision, or after it
    /// ([`Graph::after`]), and is no part of it.
    ///
    /// The example `heat_loop` is a whole program around such a loop.
    ///
    /// May **wait** for the device, as it allocates memory for the [count of
    /// rounds](Loop::rounds_done). Stands on `cuGraphConditionalHandleCreate` and `cuGraphAddNode`,
    /// CUDA 12.3. On an older driver, the loop is drawn all the same, with an empty node of the
    /// driver's in its place, and `cuGraphCreate` for its body: the host can [run
    /// it](Graph::instantiate_with_fallback), and nothing else can ([`Error::NeedsHost`]).
    ///
    /// # Errors
    /// Those of the closure; an older driver, where other code has the graph ([`Error::TooOld`]);
    /// memory without elements ([`Error::NothingToTest`]) or of another context; a frontier with
    /// other edges than full ones; the closure has removed the loop; or what the driver answers.
    /// Whatever fails, all that was added here is taken out again, also if the closure panics; what
    /// the closure has done elsewhere stays. Its condition waits for the next ready-made loop or
    /// branch of the graph: until then, the graph cannot be instantiated
    /// ([`Error::UnusedCondition`]), as the driver cannot take conditions back.
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_WHILE")]
    pub fn while_loop<'m, R, E: From<Error>>(
        &self,
        going: impl Into<Repeat<'m>>,
        fill: impl FnOnce(&LoopBody) -> Result<R, E>,
    ) -> Result<Loop<R>, E> {
        self.repeat(DecisionPoint::BeforeWhile, going.into(), fill)
    }

    /// Adds a loop that runs its body once, and then again as long as a number in memory passes a
    /// test; see [`while_loop`](Self::while_loop). Of the same body and the same test, it is the
    /// loop for a number that the body itself computes.
    ///
    /// # Errors
    /// As for [`while_loop`](Self::while_loop); a limit of 0 rounds, as there is at least one
    /// ([`Error::NoRounds`]).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_WHILE")]
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
    /// # fn example(graph: &Graph, errors: &cuda_handles::Buffer<u32>, values: &cuda_handles::Buffer<f32>) -> cuda_graph::Result<()> {
    /// graph.root().if_then(Test::at_least(errors, 10), |body| body.root().fill(values, 0.0))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The number is looked at when the graph gets there, by one kernel of the library's before the
    /// branch. What the closure returns is in [`Branch::inside`].
    ///
    /// Stands on `cuGraphConditionalHandleCreate` and `cuGraphAddNode`, CUDA 12.3; on an older
    /// driver it is drawn for the host, as a [loop](Self::while_loop) is.
    ///
    /// # Errors
    /// As for [`while_loop`](Self::while_loop).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    pub fn if_then<R, E: From<Error>>(
        &self,
        test: Test<'_>,
        fill: impl FnOnce(&Graph) -> Result<R, E>,
    ) -> Result<Branch<IfNode, R>, E> {
        let builder = self.branch(ConditionalKind::If, test)?;
        let filled = fill_body(&builder, 0, fill);
        let (node, deciders, inside) = builder.end(filled)?;
        Ok(Branch { node: IfNode::wrap(node), deciders, inside })
    }

    /// Adds a branch that runs the one of two bodies if a number in memory passes a test, else the
    /// other. One closure after the other fills them.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Test};
    /// # fn example(
    /// #     graph: &Graph, middle: &cuda_handles::Buffer<f64>, low: &cuda_handles::Buffer<f64>, high: &cuda_handles::Buffer<f64>
    /// # ) -> cuda_graph::Result<()> {
    /// let is_below = Test::less(middle, 0.0);
    /// graph.root().if_then_else(is_below, |then| then.root().copy(middle, low), |or| or.root().copy(middle, high))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Otherwise as [`if_then`](Self::if_then), but for the driver by which the device can decide:
    /// CUDA 12.8.
    ///
    /// # Errors
    /// As for [`while_loop`](Self::while_loop).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    pub fn if_then_else<R, S, E: From<Error>>(
        &self,
        test: Test<'_>,
        then: impl FnOnce(&Graph) -> Result<R, E>,
        otherwise: impl FnOnce(&Graph) -> Result<S, E>,
    ) -> Result<Branch<IfElseNode, (R, S)>, E> {
        let builder = self.branch(ConditionalKind::IfElse, test)?;
        let filled =
            fill_body(&builder, 0, then).and_then(|first| Ok((first, fill_body(&builder, 1, otherwise)?)));
        let (node, deciders, inside) = builder.end(filled)?;
        Ok(Branch { node: IfElseNode::wrap(node), deciders, inside })
    }

    /// [`while_loop`](Self::while_loop) as long as a number is not 0.
    ///
    /// # Errors
    /// As for [`while_loop`](Self::while_loop).
    pub fn while_nonzero<'m, T: Testable, R, E: From<Error>>(
        &self,
        found: impl NodeMemory<'m, T>,
        fill: impl FnOnce(&LoopBody) -> Result<R, E>,
    ) -> Result<Loop<R>, E> {
        self.while_loop(Test::nonzero(found), fill)
    }

    /// [`do_while_loop`](Self::do_while_loop) as long as a number is not 0.
    ///
    /// # Errors
    /// As for [`while_loop`](Self::while_loop).
    pub fn do_while_nonzero<'m, T: Testable, R, E: From<Error>>(
        &self,
        found: impl NodeMemory<'m, T>,
        fill: impl FnOnce(&LoopBody) -> Result<R, E>,
    ) -> Result<Loop<R>, E> {
        self.do_while_loop(Test::nonzero(found), fill)
    }

    /// [`if_then`](Self::if_then) where a number is not 0.
    ///
    /// # Errors
    /// As for [`while_loop`](Self::while_loop).
    pub fn if_nonzero<'m, T: Testable, R, E: From<Error>>(
        &self,
        found: impl NodeMemory<'m, T>,
        fill: impl FnOnce(&Graph) -> Result<R, E>,
    ) -> Result<Branch<IfNode, R>, E> {
        self.if_then(Test::nonzero(found), fill)
    }

    fn branch(&self, class: ConditionalKind, test: Test<'_>) -> Result<ConditionalBuilder<'_>> {
        let decider = Decider::of(self.graph(), test, self.needs_place_holder(class)?)?;
        ConditionalBuilder::begin(self, class, &decider, DecisionPoint::Branch)
    }

    fn repeat<R, E: From<Error>>(
        &self,
        stand: DecisionPoint,
        Repeat { test, limit }: Repeat<'_>,
        fill: impl FnOnce(&LoopBody) -> Result<R, E>,
    ) -> Result<Loop<R>, E> {
        if stand == DecisionPoint::BeforeDoWhile && limit == 0 {
            return Err(Error::NoRounds.into());
        }
        let decider = Decider::of(self.graph(), test, self.needs_place_holder(ConditionalKind::While)?)?;
        let rounds = self.graph().context().alloc_blocking::<u64>(1).map_err(Error::from)?;
        let decider = decider.counting(RoundCounter { count: rounds.clone(), limit });
        let mut builder = ConditionalBuilder::begin(self, ConditionalKind::While, &decider, stand)?;
        let filled = fill_loop(&mut builder, &decider, &rounds, fill);
        let (node, deciders, inside) = builder.end(filled)?;
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
