//! Pools of executables, for parallel runs of the same work.

use core::fmt;
use core::mem::ManuallyDrop;

use cuda_handles::internal::{Lock, Rank, wait_unless_inside};
use cuda_handles::{AsStream, Context, Stream, WrongContext};

use crate::cache::STREAM_OF_HOME;
use crate::cache::slots::{Asked, Freedom, Slots};
use crate::error::wrong_context::ensure;
use crate::error::{CacheError, Result};
use crate::exec::GraphExec;
use crate::exec::options::InstantiateOptions;
use crate::graph::Graph;

/// Executables of the same work that run in parallel, on several streams.
///
/// An executable never overlaps itself, so launches of one on two streams run one after the other.
/// A pool has several, each made of a graph of its own, with intermediate memory of its own. `P` is
/// what the program needs to use one: its [graph parameters](crate::GraphParam).
///
/// ```no_run
/// # use cuda_graph::{ContextExt, ExecPool, GraphParam, Result};
/// # use cuda_handles::{Buffer, Context, Stream};
/// # fn example(context: &Context, streams: &[Stream], outputs: &[Buffer<f32>]) -> Result<()> {
/// let pool = ExecPool::new(4, |_| {
///     let stream = context.stream()?;
///     let (scratch, first) = (stream.zeros::<f32>(64)?, stream.zeros::<f32>(64)?);
///     let graph = context.graph()?;
///     let output = graph.param(&first)?;
///     graph.root().fill(&scratch, 1.0)?.then().copy(&scratch, &output)?;
///     Ok((graph, output))
/// })?;
/// for (stream, buffer) in streams.iter().zip(outputs) {
///     pool.launch(stream, |exec, output| exec.launch_with(stream, ((output, buffer),)))?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Which executable a launch takes
///
/// Of those that no other call has:
///
/// 1. one whose last run is on the same stream, which follows that anyway;
/// 2. one that has not run, or whose last run is over;
/// 3. the one that was used longest ago. The launch then runs behind its last run. The host does
///    not wait.
///
/// The streams of last runs are asked only if there is none of the first kind and a choice
/// (`cuStreamQuery`, CUDA 2.0, once for each stream at most).
///
/// # Several contexts
///
/// A pool takes streams of its graphs' home context alone, also if the graphs
/// [span](Graph::spanning) several: a stream of another one is refused
/// ([`WrongContext`](cuda_handles::Error::WrongContext)).
///
/// # Waiting
///
/// A launch never waits for the device. If other threads have all executables, which each has for
/// as long as its closure runs, it waits for one of them, with the library's
/// [patience](cuda_handles::set_patience).
#[doc(alias = "cuGraphLaunch")]
#[doc(alias = "concurrent graph launches")]
pub struct ExecPool<P = ()> {
    context: Context,
    state: Lock<PoolState<P>>,
}

struct PoolState<P> {
    slots: Slots<Member<P>>,
    /// Counts the executables that were taken.
    taken: u64,
}

struct Member<P> {
    exec: GraphExec,
    params: P,
}

impl<P> ExecPool<P> {
    /// Makes a pool of `count` executables, each of the graph that `build` makes for its number.
    ///
    /// Calls `cuGraphInstantiateWithParams` (CUDA 12.0) for each.
    ///
    /// # Errors
    /// The errors of `build` and of [`Graph::instantiate`]. The graphs are of different contexts.
    /// [`CacheError::NoExecutables`] if `count` is 0. If `build` returns a graph again that it has
    /// returned before, the errors of [`of`](ExecPool::of).
    pub fn new(count: usize, build: impl FnMut(usize) -> Result<(Graph, P)>) -> Result<Self> {
        Self::with_options(count, &InstantiateOptions::new(), build)
    }

    /// [`new`](Self::new) with options for all executables.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_options(
        count: usize,
        options: &InstantiateOptions,
        mut build: impl FnMut(usize) -> Result<(Graph, P)>,
    ) -> Result<Self> {
        let (mut slots, mut graphs) = (Slots::new(), Vec::<Graph>::new());
        for number in 0..count {
            let (graph, params) = build(number)?;
            if let Some(first) = graphs.first() {
                let (own, found) = (first.context(), graph.context());
                ensure(own, found, || WrongContext::new("a graph of the pool", found, "the first one", own))?;
            }
            if graphs.contains(&graph) {
                ensure_shareable(&graph)?;
            }
            let exec = graph.instantiate_with(options.clone())?;
            slots.add(number as u64, Box::new(Member { exec, params }));
            graphs.push(graph);
        }
        let context = graphs.first().ok_or(CacheError::NoExecutables)?.context().clone();
        Ok(Self { context, state: Lock::new(Rank::ExecPool, PoolState { slots, taken: 0 }) })
    }

    /// An executable for a launch on `stream`, [chosen](Self#which-executable-a-launch-takes) among
    /// those that no other call has. It goes back to the pool when the result is dropped.
    ///
    /// # Errors
    /// - `stream` is of another context than the home of the graphs
    ///   ([`WrongContext`](cuda_handles::Error::WrongContext)), or the context is lost.
    /// - [`CacheError::InUse`]: this thread has taken all executables.
    /// - [`Busy`](cuda_handles::Error::Busy): other threads have all executables all the time.
    pub fn get(&self, stream: &impl AsStream) -> Result<PooledExec<'_, P>> {
        let stream = stream.as_stream();
        let (found, own) = (stream.context(), &self.context);
        found.ensure_usable()?;
        let wrong = || WrongContext::new("the stream of the launch", found, "the pool", own);
        ensure(own, found, || wrong().advise(STREAM_OF_HOME))?;
        let mut asked = Asked::default();
        let by = "calls that launch them, on other threads";
        let attempt = || self.try_take(stream, &mut asked).transpose();
        wait_unless_inside(own, "every executable of the pool", by, attempt)?
    }

    /// Takes an executable for `stream`, and calls `launch` with it and what goes with it.
    ///
    /// ```no_run
    /// # use cuda_graph::{ExecPool, GraphParam, Result};
    /// # use cuda_handles::{Buffer, Stream};
    /// # fn example(
    /// #     pool: &ExecPool<GraphParam<[f32]>>, stream: &Stream, x: &Buffer<f32>
    /// # ) -> Result<()> {
    /// pool.launch(stream, |exec, input| exec.launch_with(stream, ((input, x),)))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`get`](Self::get) and of `launch`.
    pub fn launch<R>(
        &self,
        stream: &impl AsStream,
        launch: impl FnOnce(&mut GraphExec, &P) -> Result<R>,
    ) -> Result<R> {
        let mut pooled = self.get(stream)?;
        let (exec, params) = pooled.parts();
        launch(exec, params)
    }

    /// The number of executables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.lock().slots.len()
    }

    /// Whether there are none: never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// `None` if other threads have all executables.
    fn try_take(&self, stream: &Stream, asked: &mut Asked) -> Result<Option<PooledExec<'_, P>>> {
        loop {
            let mut state = self.state.lock();
            let Some(best) = state.slots.best(Some(stream), asked, |_| true) else {
                let is_mine = state.slots.are_all_mine();
                return if is_mine { Err(CacheError::InUse.into()) } else { Ok(None) };
            };
            if best.freedom == Freedom::Unasked
                && state.slots.len() > 1
                && let Some((id, last)) = state.slots.stream_of(best)
            {
                drop(state);
                asked.ask(id, &last);
                continue;
            }
            state.taken += 1;
            let now = state.taken;
            let taken = state.slots.take(best, now);
            return Ok(taken.map(|(number, member)| PooledExec {
                pool: self,
                number,
                member: ManuallyDrop::new(member),
            }));
        }
    }
}

impl ExecPool {
    /// Makes a pool of `count` executables of one graph. All have the same memory, apart from what
    /// [graph parameters](crate::GraphParam) stand for, so this is for graphs that write parameters
    /// alone. Give runs that may overlap different memory for them. Events that nodes record are
    /// the same for all executables.
    ///
    /// ```no_run
    /// # use cuda_graph::{ContextExt, ExecPool, Result};
    /// # use cuda_handles::{Buffer, Context, Stream};
    /// # fn example(
    /// #     context: &Context, streams: &[Stream; 2], first: &Buffer<f32>,
    /// #     buffers: &[Buffer<f32>; 2]
    /// # ) -> Result<()> {
    /// let graph = context.graph()?;
    /// let output = graph.param(first)?;
    /// graph.root().fill(&output, 1.0)?;
    /// let pool = ExecPool::of(&graph, 2)?;
    /// for (stream, buffer) in streams.iter().zip(buffers) {
    ///     pool.launch(stream, |exec, ()| exec.launch_with(stream, ((&output, buffer),)))?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphInstantiateWithParams` (CUDA 12.0) for each executable, and
    /// `cuGraphKernelNodeGetParams` (CUDA 12.0) for each kernel node.
    ///
    /// # Errors
    /// - [`CacheError::SharedWrite`]: a node writes memory that is no parameter.
    /// - [`CacheError::MayWrite`]: it is not known what a node writes, as for untyped kernels and
    ///   host functions.
    /// - [`CacheError::NoExecutables`] if `count` is 0.
    /// - The errors of [`Graph::instantiate`], as for graphs that can have
    ///   [one executable](Graph::instantiate).
    pub fn of(graph: &Graph, count: usize) -> Result<Self> {
        if count > 1 {
            ensure_shareable(graph)?;
        }
        Self::new(count, |_| Ok((graph.clone(), ())))
    }
}

/// Refuses a graph whose executables would write the same memory.
fn ensure_shareable(graph: &Graph) -> Result<()> {
    graph.enter()?.ensure_writes_are_params()
}

/// An executable of an [`ExecPool`], until this is dropped.
#[must_use = "the executable goes back to the pool at once"]
pub struct PooledExec<'p, P> {
    pool: &'p ExecPool<P>,
    number: u64,
    /// Taken in the drop alone.
    member: ManuallyDrop<Box<Member<P>>>,
}

impl<P> PooledExec<'_, P> {
    /// The executable, and what goes with it.
    pub fn parts(&mut self) -> (&mut GraphExec, &P) {
        let Member { exec, params } = &mut **self.member;
        (exec, params)
    }

    /// The number of the executable, for which the graph was built.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number as usize
    }
}

impl<P> Drop for PooledExec<'_, P> {
    fn drop(&mut self) {
        // SAFETY: nothing else takes it, and it is not used afterwards.
        let member = unsafe { ManuallyDrop::take(&mut self.member) };
        let last_run = member.exec.owners.ran_on();
        let gone = self.pool.state.lock().slots.put(self.number, member, Some(last_run));
        drop(gone);
    }
}

impl<P> fmt::Debug for ExecPool<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ExecPool").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<P> fmt::Debug for PooledExec<'_, P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PooledExec").field("number", &self.number).finish_non_exhaustive()
    }
}
