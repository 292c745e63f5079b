//! Updates of whole executables from a graph.

use std::sync::Arc;

use cuda_handles::internal::HeldStream;
use cuda_handles::{Buffer, Error as HandleError, GraphHandle, Stream};
use cuda_sys::{CUgraph, CUgraphExecUpdateResultInfo, CUgraphNode, CUresult, Call};

use crate::error::wrong_context::ensure_spans;
use crate::error::{Error, ExecError, NodeError, Refusal, RefusalReason, Result};
use crate::exec::exec_params::ExecParams;
use crate::exec::instantiate::awaited_streams;
use crate::exec::recorded_events::RecordedEvents;
use crate::exec::source::Source;
use crate::exec::{GraphExec, NotRebuilt};
use crate::graph::Graph;
use crate::node_name::NodeName;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::update::located::counterparts;
use crate::update::source::{Pairs, UpdateSource};
use crate::update::whole_shaped::check_apart;

/// The outcome of an [update](GraphExec::update).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "if the update was refused, the executable is as it was, and the graph has to be instantiated"]
pub enum Update {
    /// The executable does what the graph does.
    Updated,
    /// The executable is as it was, for this reason.
    Refused(Refusal),
}

impl Update {
    /// Whether the executable does what the graph does.
    #[must_use]
    pub fn is_updated(&self) -> bool {
        matches!(self, Self::Updated)
    }

    /// The reason for which the executable is as it was; `None` if it was updated.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Updated => None,
            Self::Refused(refusal) => Some(refusal),
        }
    }
}

/// A node whose key is not known.
pub(super) struct NoKey;

#[cold]
pub(super) fn unpaired() -> Refusal {
    let why = "it has graph parameters, and it is not known which nodes of the executable take them: its nodes \
               or edges are others, or the graph of the executable was changed";
    Refusal::new(RefusalReason::Unpaired, why)
}

/// A failed driver call: the code, and the reason with the nodes that the driver reports.
struct Failure {
    code: CUresult,
    info: CUgraphExecUpdateResultInfo,
}

impl GraphExec {
    /// Updates the executable to what a graph does now, for later launches: the graph that it was
    /// made of, with other parameters, or another graph with the same structure.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, GraphExec, Result, Update};
    /// # use cuda_handles::Stream;
    /// # fn example(exec: &mut GraphExec, graph: &Graph, stream: &Stream) -> Result<()> {
    /// match exec.update(graph)? {
    ///     Update::Updated => exec.launch(stream)?,
    ///     Update::Refused(refusal) => println!("{refusal}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The structure is the same if the driver can pair the nodes: it begins at the nodes that no
    /// other waits for, in the order in which they were added, and follows the edges backwards, in
    /// the order in which they were added. Build both graphs by the same code.
    ///
    /// | changes of a pair | allowed |
    /// | --- | --- |
    /// | kernel, configuration, arguments | all, but a launch stays cooperative or not |
    /// | copy | addresses and size of a row of bytes, between the same kinds of memory; memory of pools counts as one |
    /// | fill | all of a row, the value of a rectangle |
    /// | host function, event | all |
    /// | batch | addresses and values |
    /// | child graph, bodies | what is allowed for the nodes in them |
    /// | condition of a conditional node | its default; not its number, which counts conditions of a graph |
    ///
    /// Refused without a call of the driver are graphs with allocation or free nodes, executables
    /// [that kernels launch](crate::InstantiateOptions::device_launch), and graphs in which a node
    /// decides about a condition that is disabled in the executable.
    ///
    /// Launches that are enqueued or running keep what they had, and nothing waits for them. From
    /// the next launch on, all parameters are the graph's; what [node updates](Self::node) have set
    /// is gone. The [graph parameters](crate::GraphParam) are those of the graph, with their
    /// initial values. Nodes that are disabled stay so, unless a graph parameter enables them. The
    /// executable lets go of everything that it owned, once the runs that may use it are over, and
    /// owns what the graph's nodes use.
    ///
    /// Afterwards the nodes of both graphs, the one that the executable was made of and this one,
    /// stand for the executable's nodes ([`node`](Self::node)). The executable keeps both graphs
    /// alive. If nodes or edges of one change before the first node update, the nodes of the
    /// executable cannot be updated one by one any more.
    ///
    /// Calls `cuGraphExecUpdate` (CUDA 12.0).
    ///
    /// # Errors
    /// A [refusal](Update::Refused) is no error.
    /// - The graph is of another context, or is embedded in a node
    ///   ([`EmbedError::Embedded`](crate::EmbedError::Embedded)).
    /// - The errors of [`Graph::instantiate`] for a graph that cannot be instantiated.
    /// - [`ExecError::NotRebuilt`]: there is no executable.
    /// - The driver's error. The executable is then unchanged.
    #[doc(alias = "cuGraphExecUpdate")]
    #[doc(alias = "cudaGraphExecUpdate")]
    pub fn update(&mut self, graph: &Graph) -> Result<Update> {
        if !graph.subgraph().is_root() {
            return Err(graph.refuse_embedded("taken for an update"));
        }
        self.live()?;
        ensure_spans(self, graph, || "the graph to update from")?;
        match self.try_update(graph)? {
            Ok(()) => Ok(Update::Updated),
            Err(refusal) => self.with_reason(graph, refusal).map(Update::Refused),
        }
    }

    /// [Updates](Self::update) the executable, or makes another one of the graph in its place, with
    /// the same [options](Self::options). Returns the reason for which it had to; `None` after an
    /// update.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, GraphExec, Result};
    /// # use cuda_handles::Stream;
    /// # fn example(exec: &mut GraphExec, graph: &Graph, stream: &Stream) -> Result<()> {
    /// if let Some(refusal) = exec.update_or_rebuild(graph)? {
    ///     println!("instantiated again: {refusal}");
    /// }
    /// exec.launch(stream)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// In a new executable all nodes are enabled. Its first launch waits for the last one before.
    ///
    /// # One executable at a time
    ///
    /// If the executable was made of this graph, and the graph can have one
    /// ([`Graph::instantiate`]), the executable is given up before the new one is made. If that
    /// fails, as while a run is in flight of an executable with conditional nodes
    /// ([`StillRunning`](cuda_handles::Error::StillRunning)), there is none: launches return
    /// [`ExecError::NotRebuilt`], until another call of this method makes one.
    ///
    /// # Errors
    /// The errors of [`update`](Self::update) and of [`Graph::instantiate_with`]. The executable is
    /// then unchanged, with the exception above.
    #[doc(alias = "cuGraphExecUpdate")]
    #[doc(alias = "cudaGraphExecUpdate")]
    #[doc(alias = "cuGraphInstantiateWithParams")]
    pub fn update_or_rebuild(&mut self, graph: &Graph) -> Result<Option<Refusal>> {
        let given_up = self.handle.as_ref().err().map(|why| why.refusal.clone());
        let refusal = match given_up {
            Some(refusal) => refusal,
            None => match self.update(graph)? {
                Update::Updated => return Ok(None),
                Update::Refused(refusal) => refusal,
            },
        };
        let rebuilt = match graph.instantiate_with(self.options().clone()) {
            Err(Error::Exec(ExecError::OneExecutable { .. })) if self.is_only_one_of(graph) => {
                self.give_up(&refusal);
                graph.instantiate_with(self.options().clone())
            }
            other => other,
        };
        match rebuilt {
            Ok(mut new) => {
                // Launches go on in one line.
                new.launches.former_runs = self.runs();
                *self = new;
                Ok(Some(refusal))
            }
            Err(error) => {
                if let Err(why) = &mut self.handle {
                    why.cause = error.to_string();
                }
                Err(error)
            }
        }
    }

    /// The streams on which it may still run, and those of the runs that its next one waits for.
    pub(crate) fn runs(&self) -> Vec<HeldStream> {
        self.launches.former_runs.iter().chain(self.owners.ran_streams()).cloned().collect()
    }

    /// Whether the graph's only executable is this one.
    fn is_only_one_of(&self, graph: &Graph) -> bool {
        self.handle.is_ok() && self.launches.runs.is_some() && self.source.is_of(graph.hierarchy())
    }

    /// Destroys the executable, or lets its destruction be deferred.
    fn give_up(&mut self, refusal: &Refusal) {
        let none = NotRebuilt { refusal: refusal.clone(), cause: String::new() };
        drop(core::mem::replace(&mut self.handle, Err(Box::new(none))));
        self.owners.give_up();
        self.launches.awaited = Vec::new();
        self.launches.outputs = None;
        self.launches.scratch = Arc::from([]);
    }

    /// The update itself; a refusal changes nothing.
    fn try_update(&mut self, graph: &Graph) -> Result<Result<(), Refusal>> {
        // Declared before the lock, so that nothing is dropped under it.
        let mut spare = None;
        let (base, params, awaited, events, scratch, replaced, shaped);
        let source = self.pair_with(graph)?;
        let mut guard = graph.enter_with_spare(&mut spare)?;
        if self.shaping.is_some() || self.options().is_for_device_launch() {
            guard.ensure_read()?;
        }
        let source = source.taken_now(&guard, &self.updates);
        if let Some(refusal) = self.refusal(&guard, &source) {
            return Ok(Err(refusal));
        }
        guard.ensure_executable(graph, self.options())?;
        params = match self.params_after_update(&guard, spare, &source) {
            Ok(params) => params,
            Err(NoKey) => return Ok(Err(unpaired())),
        };
        if let Some(refusal) = self.disabled_fill(params.as_deref()) {
            return Ok(Err(refusal));
        }
        let changes = match check_apart(self.apart.as_deref_mut(), &guard, &source)? {
            Ok(changes) => changes,
            Err(refusal) => return Ok(Err(refusal)),
        };
        awaited = self.awaited_after_update(&guard);
        (events, scratch) = (RecordedEvents::of(&guard), guard.scratch().into());
        let mut owners = guard.owners();
        owners.extend(self.shaped().into_iter().flat_map(|shaped| shaped.owners(graph)));
        base = owners;
        shaped = match self.copy_of_shape(&guard, &source)? {
            Ok(copy) => copy,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let raw = shaped.as_ref().map_or(guard.raw(), GraphHandle::as_raw);
        if let Err(failure) = self.call_update(&guard, raw) {
            return guard.refusal_of(&failure).map(Err);
        }
        let updates = match source {
            UpdateSource::Own { .. } => self.updates.update_from_own(&mut guard),
            UpdateSource::Other { pairs } => {
                let counterparts = pairs.map(|pairs| pairs.counterparts);
                self.updates.update_from(&mut guard, Source::of(graph), counterparts)
            }
        };
        let former = self.shaping.as_mut().and_then(|shaping| shaping.graph.as_mut());
        let former = former.and_then(|former| former.updated_from(shaped));
        if let Some(apart) = &mut self.apart {
            apart.commit(changes);
        }
        let launches = &mut self.launches;
        replaced = (
            former,
            updates,
            self.owners.replace(base, params),
            core::mem::replace(&mut launches.awaited, awaited),
            core::mem::replace(&mut launches.events, events),
            core::mem::replace(&mut launches.scratch, scratch),
        );
        drop(guard);
        drop(replaced);
        Ok(Ok(()))
    }

    /// Refuses new parameters without one for a fill that is disabled, which would fill again.
    pub(super) fn disabled_fill(&self, new: Option<&ExecParams>) -> Option<Refusal> {
        let mut fills = self.owners.since.params.iter().flat_map(|params| params.spare_fills());
        let is_enabled_again = fills.any(|key| !new.is_some_and(|new| new.has(key)));
        let why = "a graph parameter has disabled a fill in the executable, and the graph has no parameter for \
                   that fill; enable it first";
        is_enabled_again.then(|| Refusal::new(RefusalReason::Disabled, why))
    }

    /// The graph parameters after an update, with their initial values. An error if a node that
    /// takes one has no key.
    pub(super) fn params_after_update(
        &self,
        guard: &GraphGuard<'_>,
        spare: Option<Buffer<u32>>,
        source: &UpdateSource,
    ) -> Result<Option<Box<ExecParams>>, NoKey> {
        let Some(params) = ExecParams::of(guard, spare) else { return Ok(None) };
        let params = params.with_keys(|id| source.key(id), |key| self.updates.is_enabled(key));
        params.map(Some).ok_or(NoKey)
    }

    /// Pairs the nodes of a graph with the executable's, if what goes by node is needed at once:
    /// the nodes that decide about conditions, those that take graph parameters, and all of an
    /// executable that was shaped.
    pub(super) fn pair_with(&self, graph: &Graph) -> Result<UpdateSource> {
        if self.source.is_of(graph.hierarchy()) {
            return Ok(UpdateSource::Own { is_as_it_was: true });
        }
        let is_needed = self.shaped().is_some() || {
            let guard = graph.enter_unread()?;
            guard.has_conditionals() || !guard.bindings.is_empty()
        };
        let keys = if is_needed { self.source.graph() } else { None };
        let Some(keys) = keys else { return Ok(UpdateSource::Other { pairs: None }) };
        let mut guards = match keys.enter_with(graph) {
            // The graph of the keys has none any more; the other one is locked again below.
            Err(Error::Node(NodeError::GraphMoved) | Error::Broken(_)) => {
                return Ok(UpdateSource::Other { pairs: None });
            }
            guards => guards?,
        };
        let counterparts = counterparts(&mut guards, &self.updates, true)?;
        let structure = guards.other_guard().changes.structure();
        Ok(UpdateSource::Other { pairs: Some(Pairs { counterparts, structure }) })
    }

    /// Refuses a graph of which no driver is asked.
    pub(super) fn refusal(&self, guard: &GraphGuard<'_>, source: &UpdateSource) -> Option<Refusal> {
        if self.options().is_for_device_launch() {
            let why = "kernels may launch the executable at any time";
            return Some(Refusal::new(RefusalReason::DeviceLaunch, why));
        }
        if let Some(refusal) = guard.refusal_of_memory() {
            return Some(refusal);
        }
        if let Some(refusal) = self.shaped().and_then(|shaped| self.refusal_of_shape(shaped, guard, source)) {
            return Some(refusal);
        }
        self.refusal_of_disabled(guard, source)
    }

    /// Refuses a graph with nodes that decide about conditions, if one may be disabled in the
    /// executable: a loop would never end.
    fn refusal_of_disabled(&self, guard: &GraphGuard<'_>, source: &UpdateSource) -> Option<Refusal> {
        if self.updates.disabled().len() == 0 {
            return None;
        }
        let is_disabled = |id: &NodeId| source.key(*id).is_none_or(|key| !self.updates.is_enabled(key));
        let node = guard.kernels_with_handles().find(is_disabled)?;
        let why = "it decides about a condition, and is disabled in the executable, or may be; enable all nodes \
                   first";
        Some(Refusal::new(RefusalReason::Disabled, why).at(guard.name(node)))
    }

    /// The streams that the next launch waits for after an update from the graph.
    fn awaited_after_update(&self, guard: &GraphGuard<'_>) -> Vec<Stream> {
        let mut awaited = awaited_streams(guard);
        if !self.launches.awaited.is_empty() {
            // There was no launch yet that has waited for the previous executable's runs.
            for stream in self.owners.followed() {
                if !awaited.contains(&stream) {
                    awaited.push(stream);
                }
            }
        }
        awaited
    }

    /// `graph` is the locked graph, or one of its own shape that nobody else knows.
    fn call_update(&mut self, guard: &GraphGuard<'_>, graph: CUgraph) -> Result<(), Failure> {
        let mut info = CUgraphExecUpdateResultInfo::default();
        let exec = match &self.handle {
            Ok(handle) => handle.as_raw(),
            Err(_) => core::ptr::null_mut(),
        };
        // SAFETY: the executable is live, as the caller has checked, and the exclusive reference
        // keeps other calls on it away. The graph is live and locked, and the out pointer is valid.
        let code = unsafe { guard.driver().cuGraphExecUpdate(exec, graph, &raw mut info) };
        if code.is_success() { Ok(()) } else { Err(Failure { code, info }) }
    }

    /// A refusal with the reason that a comparison of the graphs finds, if that tells more.
    fn with_reason(&self, graph: &Graph, refusal: Refusal) -> Result<Refusal> {
        let is_of_driver = !matches!(
            refusal.reason,
            RefusalReason::MemoryNodes
                | RefusalReason::DeviceLaunch
                | RefusalReason::Disabled
                | RefusalReason::Shaped
        );
        let found = if is_of_driver { self.differences_from(graph)? } else { Vec::new() };
        // Drivers name no node, or any node, where the structure differs.
        let is_unpaired = refusal.reason == RefusalReason::Unpaired;
        let is_vague = refusal.node.is_none() || refusal.reason == RefusalReason::Topology;
        let is_reason = |found: &Refusal| is_unpaired || found.reason == refusal.reason;
        let same = found.iter().find(|found| is_reason(found) && found.node == refusal.node);
        let similar = || found.iter().find(|found| is_vague && is_reason(found));
        let closest = same.or_else(similar).cloned();
        Ok(closest.unwrap_or(refusal))
    }
}

impl GraphGuard<'_> {
    /// The refusal behind a failed driver call, or the error.
    #[cold]
    fn refusal_of(&mut self, &Failure { code, info }: &Failure) -> Result<Refusal> {
        let is_refusal = matches!(
            code,
            CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE | CUresult::CUDA_ERROR_NOT_SUPPORTED
        );
        match self.answer(Call::cuGraphExecUpdate, code) {
            Err(error @ Error::Handles(HandleError::Driver { .. })) if is_refusal => {
                // If the nodes cannot be read, the refusal names none.
                let _unread = self.ensure_read();
                let (reason, why) = RefusalReason::of(info.result);
                let why = match reason {
                    RefusalReason::Other => format!("{why} ({error}, with update result {})", info.result.0),
                    _ => why.to_owned(),
                };
                let (node, from_node) =
                    (self.known_name(info.errorNode), self.known_name(info.errorFromNode));
                Ok(Refusal { reason, node, from_node, why })
            }
            Err(error) => Err(error),
            Ok(()) => Ok(Refusal::new(RefusalReason::Other, "the driver gives no closer reason")),
        }
    }

    /// The name of a node that the driver reports.
    fn known_name(&mut self, raw: CUgraphNode) -> Option<NodeName> {
        let index = if raw.is_null() { None } else { self.find(raw) };
        self.id(index?).map(|id| self.name(id))
    }
}
