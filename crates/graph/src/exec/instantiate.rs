//! Instantiation: from a graph to an executable.

use std::sync::Arc;

use cuda_handles::capture::{Enqueue, Scratch};
use cuda_handles::capture_mode::relaxed;
use cuda_handles::{Error as HandleError, GraphExecHandle, Stream};
use cuda_sys::{CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraph, CUgraphExec, CUgraphNode, CUresult, Call};

use crate::error::instantiate::InstantiateError;
use crate::error::wrong_context::ensure_of_graph;
use crate::error::{Error, ExecError, Result};
use crate::exec::GraphExec;
use crate::exec::destroy::after_deferred;
use crate::exec::exec_params::ExecParams;
use crate::exec::launch::{LaunchState, uncaptured};
use crate::exec::node_updates::NodeUpdates;
use crate::exec::options::InstantiateOptions;
use crate::exec::recorded_events::RecordedEvents;
use crate::exec::resources::ExecResources;
use crate::graph::Graph;
use crate::memory::OutputMemory;
use crate::node_kind::NodeKind;
use crate::own_kernels::Own;
use crate::shape::Shaping;
use crate::state::guard::GraphGuard;
use crate::state::last_runs::OwnRuns;

impl Graph {
    /// Makes an executable of the graph as it is now.
    ///
    /// ```no_run
    /// # fn example(
    /// #     graph: &cuda_graph::Graph, stream: &cuda_handles::Stream
    /// # ) -> cuda_graph::Result<()> {
    /// let mut exec = graph.instantiate()?;
    /// exec.launch(stream)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The executable gets its own share of all owners.
    ///
    /// # One executable at a time
    ///
    /// A graph with conditional nodes, or with allocation or free nodes, can have one executable at
    /// a time. If the previous one had conditional nodes and was dropped, its
    /// [deferred destruction](GraphExec#dropping-it) takes place now, once no stream of the context
    /// has work. The call waits for that for one second at most.
    ///
    /// After the first instantiation, no [free node](Self::free) can be added for the memory of an
    /// allocation node that is directly in the graph.
    ///
    /// Calls `cuGraphInstantiateWithParams` (CUDA 12.0).
    ///
    /// # Errors
    /// - [`ExecError::OneExecutable`]: the graph can have one executable, and has it.
    /// - [`StillRunning`](cuda_handles::Error::StillRunning): the previous executable was dropped,
    ///   and a stream, which the error names, still has work. Synchronise the stream, or
    ///   [drain](cuda_handles::reaper::drain).
    /// - [`MemoryError::MemoryOrder`](crate::MemoryError::MemoryOrder): a node uses memory of the
    ///   graph before its allocation or after its free.
    /// - [`ConditionError::UnusedCondition`](crate::ConditionError::UnusedCondition): a condition
    ///   has no node.
    /// - [`LoopError::NeedsHost`](crate::LoopError::NeedsHost): the driver has no node for a loop
    ///   or branch; see [`instantiate_with_fallback`](Self::instantiate_with_fallback).
    /// - [`ExecError::Unsound`]: other code made a structure that no driver takes. The driver is
    ///   not asked.
    /// - [`ExecError::Instantiate`]: the driver refuses the graph, with its reason, the node if it
    ///   reports one, and what [`check`](Self::check) finds in the structure.
    #[doc(alias = "cuGraphInstantiate")]
    #[doc(alias = "cuGraphInstantiateWithParams")]
    #[doc(alias = "cudaGraphInstantiate")]
    #[doc(alias = "cudaGraphInstantiateWithParams")]
    pub fn instantiate(&self) -> Result<GraphExec> {
        self.instantiate_with(InstantiateOptions::new())
    }

    /// [Instantiates](Self::instantiate) the graph with options.
    ///
    /// Calls `cuGraphInstantiateWithParams` (CUDA 12.0).
    ///
    /// # Errors
    /// As [`instantiate`](Self::instantiate). The stream of the upload is of another context, or is
    /// capturing. [`ExecError::DeviceLaunch`]: a node, which the error names, cannot be in a graph
    /// that kernels launch.
    #[doc(alias = "cuGraphInstantiateWithParams")]
    #[doc(alias = "cudaGraphInstantiateWithFlags")]
    #[doc(alias = "cudaGraphInstantiateWithParams")]
    pub fn instantiate_with(&self, options: InstantiateOptions) -> Result<GraphExec> {
        after_deferred(self, || self.make_executable(&options))
    }

    fn make_executable(&self, options: &InstantiateOptions) -> Result<GraphExec> {
        // Declared before the lock, so that nothing is dropped under it where a call fails.
        let mut spare = None;
        let (base, shaping);
        if !self.subgraph().is_root() {
            return Err(self.refuse_embedded("instantiated"));
        }
        let context = self.context();
        let own = self.kernels_of_shape(options);
        let turn = options.upload_stream().map(|stream| self.upload_turn(stream)).transpose()?;
        let mut guard = self.enter_with_spare(&mut spare)?;
        if own.is_some() || options.is_for_device_launch() {
            guard.ensure_read()?;
        }
        guard.ensure_executable(self, options)?;
        let single = guard.claim_only_executable()?;
        let launches = LaunchState {
            awaited: awaited_streams(&guard),
            former_runs: Vec::new(),
            runs: single.as_ref().map(|_| OwnRuns::new(&guard.last_runs)),
            events: RecordedEvents::of(&guard),
            outputs: OutputMemory::of(&guard, options.is_auto_free()),
            scratch: guard.scratch().into(),
        };
        let mut owners = guard.owners();
        let (made, raw) = {
            let _relaxed = relaxed(context.driver());
            context.with_current(|| guard.make_driver_executable(self, options, own))
        }??;
        let shaped = made.as_ref().and_then(|shaping| shaping.graph.as_ref());
        owners.extend(shaped.into_iter().flat_map(|shaped| shaped.owners(self)));
        (base, shaping) = (owners, made);
        guard.memory.instantiated();
        if let Some(single) = &single {
            guard.executable = Arc::downgrade(single);
        }
        let end = guard.exec_end();
        let last = single.as_ref().map(|_| guard.last_runs.clone());
        let (updates, params) = (NodeUpdates::of(&mut guard), ExecParams::of(&guard, spare));
        let mut owners = ExecResources::new(self, base, params, last);
        if options.is_for_device_launch() {
            owners.lend();
        }
        options.upload_stream().into_iter().for_each(|stream| owners.note(stream));
        // SAFETY: the driver has just made it, in this context, and nobody else knows it.
        let handle = unsafe { GraphExecHandle::from_raw_owned_with(context, raw, single, end) };
        drop(guard);
        drop(turn);
        Ok(GraphExec::new(handle, owners, self, launches, updates, options.clone()).shaped_as(shaping))
    }

    /// Access to a stream for an upload.
    pub(crate) fn upload_turn<'s>(&self, stream: &'s Stream) -> Result<Enqueue<'s>> {
        ensure_of_graph(self, stream.context(), || "the stream of the upload")?;
        uncaptured(stream, "uploading an executable graph")
    }
}

impl GraphGuard<'_> {
    /// Makes the driver's executable, of a graph of another shape if the options ask for one. The
    /// context is current.
    fn make_driver_executable(
        &mut self,
        graph: &Graph,
        options: &InstantiateOptions,
        own: Option<Result<Arc<Own>>>,
    ) -> Result<(Option<Shaping>, CUgraphExec)> {
        let mut shaping = self.shape(options, own)?;
        if let Some(made) = &mut shaping
            && let Some(shaped) = &made.graph
        {
            match instantiate(self, shaped.as_raw(), options) {
                Ok(raw) => return Ok((shaping, raw)),
                Err(failure) => {
                    let node = shaped.id_of(failure.params.hErrNode_out);
                    let node = node.map(|id| self.name(id).into_string());
                    let error = self.explain_at(&failure, node, Vec::new());
                    self.context().ensure_usable()?;
                    *made = made.left(format!("the driver does not take the graph shaped: {error}"));
                }
            }
        }
        let raw = instantiate(self, self.raw(), options);
        Ok((shaping, raw.map_err(|failure| self.explain(graph, &failure))?))
    }

    /// Refuses a graph of which no executable can be made.
    pub(crate) fn ensure_executable(&mut self, graph: &Graph, options: &InstantiateOptions) -> Result<()> {
        if options.is_for_device_launch() {
            self.fit_for_device_launch(options)?;
        }
        self.ensure_no_placeholders()?;
        self.ensure_conditions_used()?;
        self.ensure_sound(graph)?;
        self.ensure_memory_in_order()
    }
}

impl GraphGuard<'_> {
    /// Refuses a structure that no driver takes. Only other code can make one.
    fn ensure_sound(&mut self, graph: &Graph) -> Result<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let findings = sentences(&self.unsound(graph)?);
        if findings.is_empty() { Ok(()) } else { Err(Error::Exec(ExecError::Unsound { findings })) }
    }

    /// A token that lives as long as the executable about to be made, if the graph can have one at
    /// a time; an error if it has one.
    pub(crate) fn claim_only_executable(&self) -> Result<Option<Arc<()>>> {
        match self.reason_for_one_executable() {
            None => Ok(None),
            Some(of) if self.executable.strong_count() > 0 => {
                Err(Error::Exec(ExecError::OneExecutable { of }))
            }
            Some(_) => Ok(Some(Arc::default())),
        }
    }

    /// Refuses a graph that can have one executable at a time and has it.
    pub(crate) fn ensure_no_executable(&self) -> Result<()> {
        self.claim_only_executable().map(drop)
    }

    /// Whether the graph has conditions, or conditional nodes, also of other code.
    pub(crate) fn has_conditionals(&self) -> bool {
        !self.conditions.is_empty() || self.has_conditional_nodes()
    }

    /// The nodes for which the graph can have one executable at a time, if there are any.
    fn reason_for_one_executable(&self) -> Option<&'static str> {
        match (self.has_conditionals(), self.memory.is_empty()) {
            (true, _) => Some("conditional nodes"),
            (false, false) => Some("allocation or free nodes"),
            (false, true) => None,
        }
    }
}

/// The driver's report of a failed instantiation.
pub(crate) struct Failure {
    pub(crate) code: CUresult,
    pub(crate) params: CUDA_GRAPH_INSTANTIATE_PARAMS,
}

/// Calls the driver to instantiate a live graph that is locked, or that nobody else knows.
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
    // After a failure the handle means nothing.
    if code.is_success() { Ok(raw) } else { Err(Failure { code, params }) }
}

impl GraphGuard<'_> {
    /// Refuses what the driver would refuse in a graph that kernels launch, with a better reason.
    fn fit_for_device_launch(&self, options: &InstantiateOptions) -> Result<()> {
        let refused = |node, why| Err(Error::Exec(ExecError::DeviceLaunch { node, why }));
        if options.is_auto_free() {
            return refused(None, "it cannot free memory at a launch");
        }
        if !self.scratch().is_empty() {
            return refused(
                None,
                "it shares scratch memory with graphs that its launches by kernels would overlap",
            );
        }
        let mut empty = true;
        for (id, record) in self.records() {
            empty = false;
            if self.bindings.is_off(id) {
                let why = "a graph parameter disables it, and kernels would launch it enabled";
                return refused(Some(record.display_name(id).into()), why);
            }
            // By the driver's type, as the parameters of nodes of other code may be unknown.
            if !fits_device_launch(NodeKind::of(record.node_params.kind().raw())) {
                let why = "only kernels, copies, fills and child graphs of these can be in it";
                return refused(Some(record.display_name(id).into()), why);
            }
        }
        if empty { refused(None, "it needs at least one node") } else { Ok(()) }
    }

    /// The error for a failed instantiation.
    #[cold]
    fn explain(&mut self, graph: &Graph, failure: &Failure) -> Error {
        // If the nodes cannot be read, the driver's reason still stands.
        let _unread = self.ensure_read();
        let node = self.node_name(failure.params.hErrNode_out);
        // If the check fails, too, the driver's reason still stands.
        let findings = sentences(&self.unsound(graph).unwrap_or_default());
        self.explain_at(failure, node, findings)
    }

    /// [`explain`](Self::explain) with the name of the reported node and the findings.
    pub(crate) fn explain_at(
        &self,
        &Failure { code, params }: &Failure,
        node: Option<String>,
        findings: Vec<String>,
    ) -> Error {
        match self.answer(Call::cuGraphInstantiateWithParams, code) {
            Err(Error::Handles(HandleError::Driver { .. })) | Ok(()) => {
                // The graph has an executable of other code, or one that the driver failed to
                // destroy.
                if let (CUresult::CUDA_ERROR_NOT_SUPPORTED, Some(of)) =
                    (code, self.reason_for_one_executable())
                {
                    return Error::Exec(ExecError::OneExecutable { of });
                }
                Error::Exec(ExecError::Instantiate(Box::new(InstantiateError {
                    code,
                    result: params.result_out,
                    node,
                    findings,
                })))
            }
            // A lost context, for example, is no fault of the graph.
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

/// Whether a node of a type can be in a graph that kernels launch.
fn fits_device_launch(kind: NodeKind) -> bool {
    match kind {
        NodeKind::Kernel | NodeKind::Memcpy | NodeKind::Memset | NodeKind::ChildGraph => true,
        NodeKind::Empty
        | NodeKind::If
        | NodeKind::IfElse
        | NodeKind::While
        | NodeKind::Switch
        | NodeKind::HostCallback
        | NodeKind::EventRecord
        | NodeKind::EventWait
        | NodeKind::Batch
        | NodeKind::Alloc
        | NodeKind::Free
        | NodeKind::SemaphoreSignal
        | NodeKind::SemaphoreWait
        | NodeKind::Other(_) => false,
    }
}

/// The streams that the first run of an executable made now waits for, each once: the home streams
/// of memory that may not be allocated yet, and the streams of the previous executable's runs,
/// which use the same memory and conditions.
pub(crate) fn awaited_streams(guard: &GraphGuard<'_>) -> Vec<Stream> {
    let mut awaited: Vec<Stream> = Vec::new();
    let unsettled = guard.allocations().filter(|allocation| !allocation.is_settled());
    let homes = unsettled.filter_map(|allocation| allocation.home()).cloned();
    let scratch = guard.scratch();
    let homes = homes.chain(scratch.iter().filter_map(Scratch::unsettled_home).cloned());
    for stream in homes.chain(guard.last_runs.streams()) {
        if !awaited.contains(&stream) {
            awaited.push(stream);
        }
    }
    awaited
}

/// Findings as text, which, unlike findings, keeps no graph alive.
fn sentences(findings: &[impl ToString]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}
