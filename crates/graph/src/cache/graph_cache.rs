//! Caches of executables.

use core::fmt;
use core::hash::Hash;
use std::hash::RandomState;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use cuda_handles::internal::{Lock, Rank, wait_unless_inside};
use cuda_handles::{AsStream, Context, GraphExecHandle, WrongContext};

use crate::cache::STREAM_OF_HOME;
use crate::cache::cached_exec::CachedExec;
use crate::cache::entries::{Made, Request, State, Step};
use crate::cache::executable::{Executable, Refreshed};
use crate::cache::keys::{CacheKey, Compared};
use crate::cache::options::CacheOptions;
use crate::cache::slots::Asked;
use crate::cache::statistics::{CachePath, CacheStatistics, EntryStatistics, GraphSize};
use crate::cache::verify::stale_constants;
use crate::error::wrong_context::ensure;
use crate::error::{CacheError, Result};
use crate::exec::GraphExec;
use crate::exec::options::InstantiateOptions;
use crate::graph::Graph;

/// Executables by key: a graph is built once for each key, and serves all later calls.
///
/// A program that does the same work at many call sites, for several sizes, asks the cache at each
/// call. The **key** says which work it is; what differs from call to call is a
/// [graph parameter](crate::GraphParam). The **stamp** says from when the build is: with another
/// stamp, the graph is built again and the executable is updated, or made again if the driver
/// refuses the update. Everything that `build` bakes into the graph has to be part of the key or of
/// the stamp.
///
/// ```no_run
/// # use cuda_graph::{CacheOptions, ContextExt, GraphCache, GraphParam, Result};
/// # use cuda_handles::{Buffer, Context, Stream};
/// # fn example(
/// #     context: &Context, stream: &Stream, batches: &[Buffer<f32>], version: u64
/// # ) -> Result<()> {
/// let cache: GraphCache<usize, GraphParam<[f32]>> = GraphCache::new(CacheOptions::new().most(16));
/// for batch in batches {
///     let build = || {
///         let graph = context.graph()?;
///         let target = graph.param(batch)?;
///         graph.root().fill(&target, 1.0)?;
///         Ok((graph, target))
///     };
///     cache.launch(stream, batch.len(), version, build, |exec, target| {
///         exec.launch_with(stream, ((target, batch),))
///     })?;
/// }
/// println!("{} builds", cache.statistics().builds);
/// # Ok(())
/// # }
/// ```
///
/// # The key
///
/// The context, by identity, and the options of the executable are part of it by themselves. So are
/// the graph parameters: those that `build` returns stay with the executable of their graph, and
/// parameters of another graph are refused ([`ParamError::Foreign`](crate::ParamError::Foreign)).
///
/// # Streams
///
/// An executable never overlaps itself. By default a key has one executable, so launches of a key
/// on several streams run one after the other, without the host waiting. With
/// [`most_per_key`](CacheOptions::most_per_key) they run in parallel, and an executable is chosen
/// as in a [pool](crate::ExecPool#which-executable-a-launch-takes).
///
/// A graph that [spans](Graph::spanning) several contexts is for streams of its home context alone:
/// for a stream of another one, its build is refused
/// ([`WrongContext`](cuda_handles::Error::WrongContext)).
///
/// # Bounds
///
/// If the cache is [full](CacheOptions::most), the executable that was used longest ago is dropped,
/// first of those with no run in flight, then of the others. Executables that calls have taken
/// stay. A drop does not wait. An executable that is made in the place of another is there beside
/// it for a moment.
///
/// # Families that share memory
///
/// Graphs that are captured with the same [scratch memory](cuda_handles::capture::Scratch) need
/// the memory of the largest alone, as for the batch sizes of one model. They are one line: each
/// launch waits on its stream for the last one, and a key has one executable.
///
/// ```no_run
/// # use cuda_graph::{GraphCache, Result, StreamExt};
/// # use cuda_handles::capture::{CaptureOptions, Scratch};
/// # use cuda_handles::{Buffer, Stream};
/// # fn model(stream: &Stream, batch: usize) -> Result<()> { Ok(()) }
/// # fn example(
/// #     cache: &GraphCache<usize, ()>, stream: &Stream, scratch: &Scratch, batch: usize
/// # ) -> Result<()> {
/// let build = || {
///     let options = CaptureOptions::new().scratch(scratch);
///     let graph = stream.capture(options, |capture| model(capture.stream(), batch))?;
///     Ok((graph, ()))
/// };
/// cache.launch(stream, batch, 0, build, |exec, ()| exec.launch(stream))?;
/// # Ok(())
/// # }
/// ```
///
/// # Results for the host
///
/// Copy results into memory that the call site has, as a parameter. A graph that copies into
/// memory of its own gives each call what the last launch has left there.
///
/// # Threads
///
/// The code of keys and stamps (`Hash`, `Eq`, `PartialEq`, `Clone`) runs without a lock as well. It
/// can use the cache, and if it panics, the cache is as it was.
///
/// All calls of one thread can overlap those of others. An executable is with one call at a time;
/// another call for the same key waits for it, with the library's
/// [patience](cuda_handles::set_patience). `build` runs without a lock, so it can use the cache. If
/// two threads build the same key, the executable of the first stays and the other graph is
/// dropped. A build that fails or panics leaves the key as it was. Threads that take several
/// executables at once take them in the same order; otherwise they may wait for each other until
/// their patience ends.
pub struct GraphCache<K, P, S = u64, E = GraphExec> {
    options: CacheOptions,
    verifies: AtomicBool,
    hasher: RandomState,
    pub(crate) state: Lock<State<K, P, S, E>>,
}

/// What a call found.
enum Found<'c, K: Hash + Eq, P, S: PartialEq, E: Executable> {
    /// An executable with the stamp.
    Current(CachedExec<'c, K, P, S, E>),
    /// An executable with another stamp.
    Other(CachedExec<'c, K, P, S, E>),
    /// There is none, and none of its key is being made.
    Nothing,
    /// A place for a new one.
    Place(Place<'c, K, P, S, E>),
}

/// The place of an executable that is about to be made. It is given up in the drop, unless it was
/// filled.
struct Place<'c, K: Hash + Eq, P, S: PartialEq, E: Executable> {
    cache: &'c GraphCache<K, P, S, E>,
    key: Arc<CacheKey<K>>,
    is_filled: bool,
}

/// A graph, or the closure that builds it.
enum Source<B, P> {
    Build(B),
    Built((Graph, P)),
}

impl<K, P, S, E> GraphCache<K, P, S, E> {
    /// An empty cache.
    #[must_use]
    pub fn new(options: CacheOptions) -> Self {
        let state = Lock::new(Rank::GraphCache, State::new());
        Self { options, verifies: AtomicBool::new(false), hasher: RandomState::new(), state }
    }

    /// Sets whether each hit is verified: the graph is built as well, compared with the graph of
    /// the executable, and dropped. A constant that differs and is no parameter is an error
    /// ([`CacheError::Stale`]), and nothing is launched. This is for tests: it finds what a stamp
    /// or key forgets.
    ///
    /// Nodes are compared in the order in which they were added: kernels by name, their arguments
    /// and configurations; addresses, sizes and values of fills, copies and batches. Edges, events
    /// and the closures of host functions are not compared, nor the arguments of kernels whose
    /// layout the driver does not report (before CUDA 12.4), nor structs passed by value. Memory
    /// that `build` allocates differs in each build, and is no constant; memory that somebody else
    /// holds as well is one.
    ///
    /// ```
    /// # use cuda_graph::{CacheOptions, GraphCache};
    /// let cache: GraphCache<u32, ()> = GraphCache::new(CacheOptions::new());
    /// cache.verify(cfg!(debug_assertions));
    /// ```
    pub fn verify(&self, verifies: bool) {
        self.verifies.store(verifies, Ordering::Relaxed);
    }

    /// The statistics.
    #[must_use]
    pub fn statistics(&self) -> CacheStatistics {
        self.state.lock().statistics()
    }

    /// The keys with their executables, in no order.
    #[must_use]
    pub fn entries(&self) -> Vec<EntryStatistics<K>>
    where
        K: Clone,
    {
        let sizes: Vec<_> = {
            let state = self.state.lock();
            state.sizes().map(|(key, executables, size)| (Arc::clone(key), executables, size)).collect()
        };
        let entries = sizes.into_iter().map(|(key, executables, GraphSize { nodes, memory_bytes })| {
            EntryStatistics { key: key.key.clone(), executables, nodes, memory_bytes }
        });
        entries.collect()
    }
}

impl<K: Hash + Eq, P, S: PartialEq, E: Executable> GraphCache<K, P, S, E> {
    /// The executable of a key with a stamp, for a launch on `stream`. If there is none, it is made
    /// of the graph that `build` returns; if it has another stamp, it is updated from that graph,
    /// or made again. It goes back to the cache when the result is dropped.
    ///
    /// With `build`'s graph goes what the program needs to use the executable: its parameters.
    ///
    /// ```no_run
    /// # use cuda_graph::{ContextExt, GraphCache, GraphParam, Result};
    /// # use cuda_handles::{Buffer, Context, Stream};
    /// # fn example(
    /// #     cache: &GraphCache<&'static str, GraphParam<[u32]>>, context: &Context,
    /// #     stream: &Stream, x: &Buffer<u32>, weights: &Buffer<u32>, version: u64
    /// # ) -> Result<()> {
    /// // The weights are no parameter, so the stamp has to change when they are others.
    /// let mut cached = cache.get(stream, "add weights", version, || {
    ///     let graph = context.graph()?;
    ///     let target = graph.param(x)?;
    ///     graph.root().copy(weights, &target)?;
    ///     Ok((graph, target))
    /// })?;
    /// let (exec, target) = cached.parts();
    /// exec.launch_with(stream, ((target, x),))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A hit makes no driver call, if the key has one executable. Otherwise
    /// `cuGraphInstantiateWithParams` (CUDA 12.0) or `cuGraphExecUpdate` (CUDA 12.0).
    ///
    /// # Errors
    /// - The errors of `build`, of [`Graph::instantiate`] and of updates. The cache is as it was,
    ///   unless the executable was [given up] for another one that could not be made: then it has
    ///   left the cache, and the next call makes one.
    /// - The graph has another home than the context of `stream`
    ///   ([`WrongContext`](cuda_handles::Error::WrongContext)), or the context is lost.
    /// - [`CacheError::InUse`]: this thread has taken all executables of the key.
    /// - [`CacheError::Full`]: this thread has taken all executables of the cache, and it is full.
    /// - [`StillRunning`](cuda_handles::Error::StillRunning): the cache is full of executables
    ///   whose destruction is deferred, and a stream, which the error names, still has work after a
    ///   second. Synchronise the stream, or [drain](cuda_handles::reaper::drain).
    /// - [`Busy`](cuda_handles::Error::Busy): other threads have the executables all the time.
    /// - [`CacheError::Stale`] if hits are [verified](Self::verify).
    ///
    /// [given up]: GraphExec::update_or_rebuild
    pub fn get(
        &self,
        stream: &impl AsStream,
        key: K,
        stamp: S,
        build: impl FnOnce() -> Result<(Graph, P)>,
    ) -> Result<CachedExec<'_, K, P, S, E>> {
        self.get_with(stream, &InstantiateOptions::new(), key, stamp, build)
    }

    /// [`get`](Self::get) with options for the executable, which are part of the key. An
    /// [upload](InstantiateOptions::upload_on) is not: it takes place when the executable is made.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_with(
        &self,
        stream: &impl AsStream,
        options: &InstantiateOptions,
        key: K,
        stamp: S,
        build: impl FnOnce() -> Result<(Graph, P)>,
    ) -> Result<CachedExec<'_, K, P, S, E>> {
        let stream = stream.as_stream();
        let context = stream.context();
        context.ensure_usable()?;
        let address = context.as_raw().addr();
        let key = CacheKey::new(&self.hasher, address, options.of_runs(), key);
        let mut request = Request {
            stream,
            keys: Compared::new(),
            stamps: Compared::new(),
            asked: Asked::default(),
            has_graph: false,
            has_destroyed: false,
            has_waited: false,
            generation: 0,
            most: self.options.most,
            most_per_key: self.options.most_per_key,
            counts_hits: !self.verifies.load(Ordering::Relaxed),
        };
        let (mut key, mut source) = (Some(key), Source::Build(build));
        loop {
            match self.find(&mut key, &stamp, &mut request)? {
                Found::Current(hit) if request.counts_hits => return Ok(hit),
                Found::Current(hit) => return self.verified(hit, source),
                Found::Other(other) => return self.refresh(other, source, stamp),
                Found::Nothing => {
                    source = Source::Built(self.built(source, context)?);
                    request.has_graph = true;
                }
                Found::Place(place) => {
                    let (generation, built) = (request.generation, self.built(source, context)?);
                    return place.make(built, stamp, options, generation);
                }
            }
        }
    }

    /// Takes the executable of a key as [`get`](Self::get) does, and calls `launch` with it and
    /// what goes with it.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get) and of `launch`.
    pub fn launch<R>(
        &self,
        stream: &impl AsStream,
        key: K,
        stamp: S,
        build: impl FnOnce() -> Result<(Graph, P)>,
        launch: impl FnOnce(&mut E, &P) -> Result<R>,
    ) -> Result<R> {
        let mut cached = self.get(stream, key, stamp, build)?;
        let (exec, params) = cached.parts();
        launch(exec, params)
    }

    /// Drops all executables. Those that calls have taken are dropped once they are put back, and
    /// so are those of builds that began before.
    pub fn clear(&self) {
        let left = self.state.lock().clear();
        drop(left);
    }

    /// [Drops all executables](Self::clear), and sets the statistics to zero.
    pub fn reset(&self) {
        self.clear();
        let before = core::mem::take(&mut self.state.lock().counts);
        drop(before);
    }

    /// Takes the next steps of a call until it has found something.
    fn find(
        &self,
        key: &mut Option<CacheKey<K>>,
        stamp: &S,
        request: &mut Request<'_, K, S>,
    ) -> Result<Found<'_, K, P, S, E>> {
        const BY: &str = "calls that launch or make them, on other threads";
        let context = request.stream.context().clone();
        loop {
            let attempt = || match self.state.lock().step(key, request) {
                Some(Step::Wait) | None => None,
                step => step,
            };
            match wait_unless_inside(&context, "every executable that could be used", BY, attempt)? {
                Step::Taken { key, number, made, is_current } => {
                    let cached = CachedExec::new(&self.state, key, number, made);
                    return Ok(if is_current { Found::Current(cached) } else { Found::Other(cached) });
                }
                Step::CompareKey(known, of_executable) => {
                    let is_same = key.as_ref().is_some_and(|key| known.key == key.key);
                    request.keys.note(known, is_same);
                    if let Some(known) = of_executable.filter(|_| is_same) {
                        request.compare_stamp(known, stamp);
                    }
                }
                Step::CompareStamp(known) => request.compare_stamp(known, stamp),
                Step::Build => return Ok(Found::Nothing),
                Step::Make(key) => return Ok(Found::Place(Place { cache: self, key, is_filled: false })),
                Step::Ask(id, stream) => request.asked.ask(id, &stream),
                Step::Drop(made, key) => drop((made, key)),
                Step::DestroyAll => {
                    request.has_destroyed = true;
                    let _ = GraphExecHandle::destroy_all_deferred();
                }
                Step::Destroy(deferred) => {
                    GraphExecHandle::destroy_deferred(&deferred.context, &deferred.destroyed)?;
                    request.has_waited = true;
                }
                Step::WaitForItself { for_any: false } => return Err(CacheError::InUse.into()),
                Step::WaitForItself { for_any: true } => {
                    return Err(CacheError::Full { bound: self.options.most }.into());
                }
                // Not returned by the attempt.
                Step::Wait => {}
            }
        }
    }

    /// A graph of the context, built now unless it was before.
    fn built<B: FnOnce() -> Result<(Graph, P)>>(
        &self,
        source: Source<B, P>,
        context: &Context,
    ) -> Result<(Graph, P)> {
        let build = match source {
            Source::Built(built) => return Ok(built),
            Source::Build(build) => build,
        };
        let (graph, params) = build()?;
        let found = graph.context();
        ensure(context, found, || {
            WrongContext::new("the graph of a cache's build", found, "the stream of the launch", context)
                .advise(STREAM_OF_HOME)
        })?;
        self.state.lock().counts.builds += 1;
        Ok((graph, params))
    }

    /// A hit, unless a build shows that the executable is stale.
    fn verified<'c, B: FnOnce() -> Result<(Graph, P)>>(
        &'c self,
        mut hit: CachedExec<'c, K, P, S, E>,
        source: Source<B, P>,
    ) -> Result<CachedExec<'c, K, P, S, E>> {
        let built = match source {
            Source::Built(built) => built,
            Source::Build(build) => build()?,
        };
        let found = stale_constants(hit.graph(), built)?;
        self.state.lock().counts.verified += 1;
        if !found.is_empty() {
            return Err(CacheError::Stale { found }.into());
        }
        hit.called(CachePath::Hit);
        Ok(hit)
    }

    /// Brings an executable up to date with a new build.
    fn refresh<'c, B: FnOnce() -> Result<(Graph, P)>>(
        &'c self,
        mut other: CachedExec<'c, K, P, S, E>,
        source: Source<B, P>,
        stamp: S,
    ) -> Result<CachedExec<'c, K, P, S, E>> {
        let (graph, params) = self.built(source, other.graph().context())?;
        let made = other.made();
        let refreshed = made.exec.refresh(&graph)?;
        let size = GraphSize::of(&graph);
        let before = (
            core::mem::replace(&mut made.graph, graph),
            core::mem::replace(&mut made.params, params),
            core::mem::replace(&mut made.stamp, Arc::new(stamp)),
        );
        (made.size, made.is_one_line) = (size, shares_scratch(&made.graph));
        let path = match refreshed {
            Refreshed::Updated => {
                self.state.lock().counts.updates += 1;
                CachePath::Updated
            }
            Refreshed::Rebuilt(reason) => {
                let destroyed = core::mem::replace(&mut made.destroyed, only_executable(&made.graph));
                let fallbacks = u64::from(made.exec.decides_on_host());
                let mut state = self.state.lock();
                state.defer(before.0.context(), &destroyed);
                *state.counts.rebuilds.entry(reason).or_default() += 1;
                state.counts.host_fallbacks += fallbacks;
                CachePath::Rebuilt
            }
        };
        drop(before);
        other.called(path);
        Ok(other)
    }
}

impl<'c, K: Hash + Eq, P, S: PartialEq, E: Executable> Place<'c, K, P, S, E> {
    /// Makes the executable.
    fn make(
        mut self,
        (graph, params): (Graph, P),
        stamp: S,
        options: &InstantiateOptions,
        generation: u64,
    ) -> Result<CachedExec<'c, K, P, S, E>> {
        let cache = self.cache;
        let exec = E::make(&graph, options, cache.options.fallback)?;
        let (destroyed, size) = (only_executable(&graph), GraphSize::of(&graph));
        let fallbacks = u64::from(exec.decides_on_host());
        let is_one_line = shares_scratch(&graph);
        let stamp = Arc::new(stamp);
        let made = Box::new(Made { exec, params, stamp, graph, destroyed, size, is_one_line });
        let mut state = cache.state.lock();
        let number = state.fill(&self.key, generation);
        state.counts.host_fallbacks += fallbacks;
        self.is_filled = true;
        drop(state);
        let mut cached = CachedExec::new(&cache.state, Arc::clone(&self.key), number, made);
        cached.called(CachePath::Built);
        Ok(cached)
    }
}

impl<K: Hash + Eq, P, S: PartialEq, E: Executable> Drop for Place<'_, K, P, S, E> {
    fn drop(&mut self) {
        if !self.is_filled {
            let key = self.cache.state.lock().give_up(&self.key);
            drop(key);
        }
    }
}

/// What lives as long as the driver's executable, if the graph can have one at a time.
fn only_executable(graph: &Graph) -> Weak<()> {
    graph.look().map(|guard| guard.executable.clone()).unwrap_or_default()
}

/// Whether the graph has memory that captures share.
fn shares_scratch(graph: &Graph) -> bool {
    graph.look().is_ok_and(|guard| !guard.scratch().is_empty())
}

impl<K, P, S, E> fmt::Debug for GraphCache<K, P, S, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statistics = self.statistics();
        formatter
            .debug_struct("GraphCache")
            .field("options", &self.options)
            .field("statistics", &statistics)
            .finish_non_exhaustive()
    }
}
