//! Making executable graphs.

use std::sync::Arc;

use cuda_handles::capture_mode::relaxed;
use cuda_handles::{Error as HandleError, Event, ExecEnd, GraphExecHandle, Stream, UserObject};
use cuda_sys::{CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraph, CUgraphExec, CUgraphNode, CUresult, Call};

use crate::error::instantiate::InstantiateError;
use crate::error::wrong_context::ensure_of_graph;
use crate::error::{Error, Result};
use crate::exec::options::InstantiateOptions;
use crate::exec::resources::ExecResources;
use crate::exec::{GraphExec, Launches, uncaptured};
use crate::graph::Graph;
use crate::memory::Outlet;
use crate::node_kind::NodeKind;
use crate::state::guard::GraphGuard;
use crate::state::last_runs::OwnRuns;
use crate::state::params::NodeParams;

impl Graph {
    /// Makes an executable of the graph as it is now.
    ///
    /// The executable gets its own share of all owners. Of the driver's objects for that, one user
    /// object, nothing stays on the graph. A graph that was [lent](Self::lend) or
    /// [adopted](Self::from_raw) is looked at first, for nodes that other code has added.
    ///
    /// The driver keeps an executable with conditional nodes after it was dropped, as it waits for
    /// all work of the device when it ends one. The next one of that graph ends it once no stream
    /// of the context has work, for which it waits a second at most.
    ///
    /// From then on, no [free node](Self::free) can be added for the memory of an allocation node
    /// that is in the graph now and not in a node of it.
    ///
    /// Stands on `cuGraphInstantiateWithParams`, CUDA 12.0, and on user objects, CUDA 11.3.
    ///
    /// # Errors
    /// A node uses memory of the graph that is not there yet or no more ([`Error::MemoryOrder`]); a
    /// graph that can have one executable has one ([`Error::OneExecutable`]), or had one with
    /// conditional nodes that was dropped, and a stream still has work
    /// ([`StillRunning`](cuda_handles::Error::StillRunning), which names it): wait for that stream,
    /// or [drain](cuda_handles::reaper::drain). [`Error::Instantiate`] with the reason in words and
    /// the node by its name, where the driver tells them, and with what [`check`](Self::check)
    /// finds wrong with the structure; for a graph that was lent or adopted, that is
    /// [`Error::Unsound`], and the driver is not asked. A loop or branch that the driver has no
    /// node for is [`Error::NeedsHost`], which
    /// [`instantiate_with_fallback`](Self::instantiate_with_fallback) takes. Should the driver
    /// refuse to take the user object off the graph again, there is no executable, and what the
    /// nodes use now lives as long as the graph.
    #[doc(alias = "cuGraphInstantiate")]
    #[doc(alias = "cuGraphInstantiateWithParams")]
    #[doc(alias = "cuUserObjectCreate")]
    pub fn instantiate(&self) -> Result<GraphExec> {
        self.instantiate_with(InstantiateOptions::new())
    }

    /// Makes the executable of a graph that can have one only, as one with conditional or memory
    /// nodes, and gives this handle of the graph up.
    ///
    /// Stands on what [`instantiate`](Self::instantiate) stands on.
    ///
    /// # Errors
    /// As [`instantiate`](Self::instantiate).
    #[doc(alias = "cuGraphInstantiate")]
    pub fn into_exec(self) -> Result<GraphExec> {
        self.instantiate()
    }

    /// Makes an executable of the graph as it is now, with options.
    ///
    /// Stands on `cuGraphInstantiateWithParams`, CUDA 12.0, and on user objects, CUDA 11.3.
    ///
    /// # Errors
    /// As [`instantiate`](Self::instantiate); a stream for the upload that is of another context or
    /// capturing; for launches by kernels: [`Error::DeviceLaunch`] with the node that cannot be in
    /// such a graph.
    #[doc(alias = "cuGraphInstantiateWithParams")]
    pub fn instantiate_with(&self, options: InstantiateOptions) -> Result<GraphExec> {
        unless_ended(self, || self.make_executable(&options))
    }

    fn make_executable(&self, options: &InstantiateOptions) -> Result<GraphExec> {
        // Declared before the lock, so that nothing is dropped under it where a call fails.
        let shared;
        if !self.subgraph().is_root() {
            return Err(self.refuse_embedded("instantiated"));
        }
        let context = self.context();
        let turn = options.upload_stream().map(|stream| self.upload_turn(stream)).transpose()?;
        let mut guard = self.enter()?;
        if options.is_for_device_launch() {
            guard.fit_for_device_launch(options)?;
        }
        guard.ensure_no_place_holders()?;
        guard.ensure_conditions_used()?;
        guard.ensure_sound(self)?;
        guard.ensure_memory_in_order()?;
        let single = guard.single()?;
        let launches = Launches {
            homes: awaited(&guard),
            runs: single.as_ref().map(|_| OwnRuns::new(&guard.last_runs)),
            events: recorded_events(&guard),
            outlet: Outlet::of(&guard, options.is_auto_free()),
        };
        shared = Arc::new(guard.owners());
        let owners = UserObject::new(context, Box::new(Arc::clone(&shared)))?;
        owners.retain_on(self.handle())?;
        let outcome = {
            let _relaxed = relaxed(context.driver());
            context.with_current(|| instantiate(&guard, guard.raw(), options))
        };
        // The executable has its own reference now; the graph gives its one back whatever came of
        // it.
        let released = owners.release_from(self.handle());
        let raw = outcome?.map_err(|failure| guard.explain(self, &failure))?;
        guard.memory.instantiated();
        if let Some(single) = &single {
            guard.executable = Arc::downgrade(single);
        }
        let put_off = single.is_some() && guard.has_conditionals();
        let end = match (put_off, guard.is_shared()) {
            (true, false) => ExecEnd::Drained,
            // Other code knows the graph as well, and may make the next one as soon as nothing
            // runs.
            (true, true) => ExecEnd::Idle,
            (false, _) => ExecEnd::AtOnce,
        };
        let last = single.as_ref().map(|_| guard.last_runs.clone());
        let mut owners = ExecResources::new(owners, last, put_off);
        if options.is_for_device_launch() {
            owners.lend();
        }
        options.upload_stream().into_iter().for_each(|stream| owners.note(stream));
        // SAFETY: the driver has just made it, in this context, and nobody else knows it.
        let handle = unsafe { GraphExecHandle::from_raw_owned_with(context, raw, single, end) };
        drop(guard);
        drop(turn);
        released?;
        Ok(GraphExec::new(handle, owners, self, launches, options.clone()))
    }

    /// The right to enqueue an upload.
    pub(crate) fn upload_turn<'s>(&self, stream: &'s Stream) -> Result<cuda_handles::capture::Enqueue<'s>> {
        ensure_of_graph(self.context(), stream.context(), || "the stream of the upload")?;
        uncaptured(stream, "uploading an executable graph")
    }
}

/// Attempts what an executable keeps from being done; and once more, as that was perhaps dropped
/// and its end put off. So are those of other graphs, which may have the memory that is lacking.
pub(crate) fn unless_ended<R>(graph: &Graph, attempt: impl Fn() -> Result<R>) -> Result<R> {
    let outcome = attempt();
    match &outcome {
        Err(Error::OneExecutable { .. }) => {
            let executable = graph.enter()?.executable.clone();
            GraphExecHandle::destroy_waiting(graph.context(), &executable)?;
        }
        Err(Error::Instantiate(error))
            if error.code == CUresult::CUDA_ERROR_OUT_OF_MEMORY && GraphExecHandle::make_room() => {}
        _ => return outcome,
    }
    attempt()
}

impl GraphGuard<'_> {
    /// Refuses a structure that no driver takes, where other code may have made one: here it cannot
    /// be made.
    fn ensure_sound(&mut self, graph: &Graph) -> Result<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let findings = words(&self.unsound(graph)?);
        if findings.is_empty() { Ok(()) } else { Err(Error::Unsound { findings }) }
    }

    /// What stands for the executable to be, if the graph can have one only; an error if there is
    /// one.
    pub(crate) fn single(&self) -> Result<Option<Arc<()>>> {
        match self.single_by() {
            None => Ok(None),
            Some(of) if self.executable.strong_count() > 0 => Err(Error::OneExecutable { of }),
            Some(_) => Ok(Some(Arc::default())),
        }
    }

    /// Refuses a graph that can have one executable and has one.
    pub(crate) fn ensure_no_executable(&self) -> Result<()> {
        self.single().map(drop)
    }

    fn has_conditionals(&self) -> bool {
        !self.conditions.is_empty() || self.has_conditional_nodes()
    }

    /// What makes it that the graph can have one executable only.
    fn single_by(&self) -> Option<&'static str> {
        match self.memory.is_empty() {
            _ if self.has_conditionals() => Some("conditional nodes"),
            false => Some("allocation or free nodes"),
            true => None,
        }
    }
}

/// What the driver reported of a failed instantiation.
pub(crate) struct Failure {
    pub(crate) code: CUresult,
    pub(crate) params: CUDA_GRAPH_INSTANTIATE_PARAMS,
}

/// Makes an executable of a live graph that is locked, or that nobody else knows.
pub(crate) fn instantiate(
    guard: &GraphGuard<'_>,
    graph: CUgraph,
    options: &InstantiateOptions,
) -> Result<CUgraphExec, Failure> {
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS { flags: options.flags(), ..Default::default() };
    if let Some(stream) = options.upload_stream() {
        params.hUploadStream = stream.as_raw();
    }
    let mut raw = core::ptr::null_mut();
    // SAFETY: the graph is live and nobody else uses it, both structures are valid for the call,
    // and the stream, if any, is alive.
    let code = unsafe { guard.driver().cuGraphInstantiateWithParams(&raw mut raw, graph, &raw mut params) };
    // The result first: with a failure the handle means nothing.
    if code.is_success() { Ok(raw) } else { Err(Failure { code, params }) }
}

impl GraphGuard<'_> {
    /// What the driver would refuse in a graph for launches by kernels, told before and in words.
    fn fit_for_device_launch(&self, options: &InstantiateOptions) -> Result<()> {
        let refused = |node, why| Err(Error::DeviceLaunch { node, why });
        if options.is_auto_free() {
            return refused(None, "it cannot free memory at a launch");
        }
        let mut empty = true;
        for (id, record) in self.records() {
            empty = false;
            // Of those that other code made the driver may not tell all.
            let fits = matches!(
                NodeKind::of(record.node_params.kind().raw()),
                NodeKind::Kernel | NodeKind::Memcpy | NodeKind::Memset | NodeKind::ChildGraph
            );
            if !fits {
                let why = "only kernels, copies, fills and child graphs of these can be in it";
                return refused(Some(record.display_name(id).into()), why);
            }
        }
        if empty { refused(None, "it needs at least one node") } else { Ok(()) }
    }

    /// A failed instantiation in words.
    #[cold]
    fn explain(&mut self, graph: &Graph, failure: &Failure) -> Error {
        let node = self.node_name(failure.params.hErrNode_out);
        // What cannot be asked for now is not told; the driver's reason is.
        let findings = words(&self.unsound(graph).unwrap_or_default());
        self.explain_at(failure, node, findings)
    }

    /// The same with the name of the node that was reported, and what is wrong with the structure.
    pub(crate) fn explain_at(
        &self,
        &Failure { code, params }: &Failure,
        node: Option<String>,
        findings: Vec<String>,
    ) -> Error {
        match self.answer(Call::cuGraphInstantiateWithParams, code) {
            Err(Error::Handles(HandleError::Driver { .. })) | Ok(()) => {
                // One of other code, or one that the driver did not destroy.
                if let (CUresult::CUDA_ERROR_NOT_SUPPORTED, Some(of)) = (code, self.single_by()) {
                    return Error::OneExecutable { of };
                }
                Error::Instantiate(Box::new(InstantiateError {
                    code,
                    result: params.result_out,
                    node,
                    findings,
                }))
            }
            // A lost context is that, not a fault of the graph.
            Err(other) => other,
        }
    }

    fn node_name(&mut self, raw: CUgraphNode) -> Option<String> {
        if raw.is_null() {
            return None;
        }
        let index = self.find(raw)?;
        let id = self.id(index)?;
        self.record(id).map(|record| record.display_name(id))
    }
}

/// The events that nodes record.
fn recorded_events(guard: &GraphGuard<'_>) -> Vec<Event> {
    let recorded = |node_params: &NodeParams| match node_params {
        NodeParams::EventRecord(event) => Some(event.clone()),
        _ => None,
    };
    guard.records().filter_map(|(_, record)| recorded(&record.node_params)).collect()
}

/// What the first run of an executable made now waits for, each once: the home streams of memory
/// that may not be allocated yet, and those where an executable before it may still run that uses
/// the same memory and conditions.
pub(crate) fn awaited(guard: &GraphGuard<'_>) -> Vec<Stream> {
    let mut awaited: Vec<Stream> = Vec::new();
    let unsettled = guard.allocations().filter(|allocation| !allocation.is_settled());
    let homes = unsettled.filter_map(|allocation| allocation.home()).cloned();
    for stream in homes.chain(guard.last_runs.streams()) {
        if !awaited.contains(&stream) {
            awaited.push(stream);
        }
    }
    awaited
}

/// Findings as errors have them, which keep no graph alive.
fn words(findings: &[impl ToString]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}
