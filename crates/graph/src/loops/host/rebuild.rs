//! Updates of executables in which the host may decide, and others in their place.

use cuda_handles::internal::HeldStream;

use super::{Executor, HostLoopExec};
use crate::error::wrong_context::ensure_of_graph;
use crate::error::{Error, ExecError, Refusal, RefusalReason, Result};
use crate::exec::{NotRebuilt, not_rebuilt};
use crate::graph::Graph;
use crate::update::whole::Update;

/// There is no executable.
pub(super) struct GivenUp {
    why: NotRebuilt,
    /// The streams on which the former one may still run.
    runs: Vec<HeldStream>,
}

impl GivenUp {
    /// The error of a call that needs an executable.
    #[cold]
    pub(super) fn error(&self) -> Error {
        not_rebuilt(&self.why)
    }
}

#[cold]
fn host_decides() -> Refusal {
    let why = "the host decides in the executable, which consists of several";
    Refusal::new(RefusalReason::HostDecides, why)
}

impl HostLoopExec {
    /// Updates the executable from a graph, as [`GraphExec::update`] does. If the
    /// [host decides](Self::is_on_host), it is refused ([`RefusalReason::HostDecides`]).
    ///
    /// Calls `cuGraphExecUpdate` (CUDA 12.0).
    ///
    /// # Errors
    /// The errors of [`GraphExec::update`].
    ///
    /// [`GraphExec::update`]: crate::GraphExec::update
    #[doc(alias = "cuGraphExecUpdate")]
    #[doc(alias = "cudaGraphExecUpdate")]
    pub fn update(&mut self, graph: &Graph) -> Result<Update> {
        match &mut self.form {
            Executor::Device(exec) => exec.update(graph),
            Executor::Host(_) => self.refuse_by_host(graph).map(Update::Refused),
            Executor::None(none) => Err(none.error()),
        }
    }

    /// Everything for which an [update](Self::update) from a graph would be refused; see
    /// [`GraphExec::check_update`]. If the [host decides](Self::is_on_host), that is all.
    ///
    /// # Errors
    /// The errors of [`GraphExec::check_update`].
    ///
    /// [`GraphExec::check_update`]: crate::GraphExec::check_update
    #[doc(alias = "cuGraphExecUpdate")]
    #[doc(alias = "cudaGraphExecUpdate")]
    pub fn check_update(&self, graph: &Graph) -> Result<Vec<Refusal>> {
        match &self.form {
            Executor::Device(exec) => exec.check_update(graph),
            Executor::Host(_) => self.refuse_by_host(graph).map(|refusal| vec![refusal]),
            Executor::None(none) => Err(none.error()),
        }
    }

    /// [Updates](Self::update) the executable, or makes another one of the graph in its place, with
    /// the same options and the same [`Fallback`](crate::Fallback): the host decides in the new one
    /// if it has to. Returns the reason for which it was made; `None` after an update.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, HostLoopExec, Result};
    /// # use cuda_handles::Stream;
    /// # fn example(exec: &mut HostLoopExec, graph: &Graph, stream: &Stream) -> Result<()> {
    /// if let Some(refusal) = exec.update_or_rebuild(graph)? {
    ///     println!("instantiated again: {refusal}");
    /// }
    /// exec.run_blocking(stream)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// In a new executable all nodes are enabled, the graph parameters have their initial values,
    /// and the [counts](Self::counts) are zero. Its first run waits for what failed runs may have
    /// left on their streams.
    ///
    /// If the executable was made of this graph, and the graph can have one, the executable is
    /// given up before the new one is made, as by [`GraphExec::update_or_rebuild`]. If that fails,
    /// there is none: runs return [`ExecError::NotRebuilt`], until another call of this method
    /// makes one.
    ///
    /// # Errors
    /// The errors of [`update`](Self::update) and of [`Graph::instantiate_with_fallback`]. The
    /// executable is then unchanged, with the exception above.
    ///
    /// [`GraphExec::update_or_rebuild`]: crate::GraphExec::update_or_rebuild
    #[doc(alias = "cuGraphExecUpdate")]
    #[doc(alias = "cudaGraphExecUpdate")]
    #[doc(alias = "cuGraphInstantiateWithParams")]
    pub fn update_or_rebuild(&mut self, graph: &Graph) -> Result<Option<Refusal>> {
        let refusal = match &self.form {
            Executor::None(none) => none.why.refusal.clone(),
            Executor::Device(_) | Executor::Host(_) => match self.update(graph)? {
                Update::Updated => return Ok(None),
                Update::Refused(refusal) => refusal,
            },
        };
        let (fallback, options) = (self.fallback, self.options.clone());
        let make = || graph.instantiate_with_fallback(fallback, options.clone());
        let rebuilt = match make() {
            Err(Error::Exec(ExecError::OneExecutable { .. })) if self.is_only_one_of(graph) => {
                let why = NotRebuilt { refusal: refusal.clone(), cause: String::new() };
                self.form = Executor::None(Box::new(GivenUp { why, runs: self.runs() }));
                make()
            }
            other => other,
        };
        match rebuilt {
            Ok(mut new) => {
                new.wait_for(self.runs());
                *self = new;
                Ok(Some(refusal))
            }
            Err(error) => {
                if let Executor::None(none) = &mut self.form {
                    none.why.cause = error.to_string();
                }
                Err(error)
            }
        }
    }

    /// Whether there is an executable.
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.form, Executor::None(_))
    }

    fn refuse_by_host(&self, graph: &Graph) -> Result<Refusal> {
        if !graph.subgraph().is_root() {
            return Err(graph.refuse_embedded("taken for an update"));
        }
        self.context.ensure_usable()?;
        ensure_of_graph(&self.context, graph.context(), || "the graph to update from")?;
        Ok(host_decides())
    }

    /// Whether the graph's only executable is this one.
    fn is_only_one_of(&self, graph: &Graph) -> bool {
        let is_single = match &self.form {
            Executor::Device(exec) => exec.launches.runs.is_some(),
            Executor::Host(host) => host.runs.is_some(),
            Executor::None(_) => false,
        };
        is_single && self.source.is_of(graph.hierarchy())
    }

    /// The streams on which it may still run, and those that its next run waits for.
    fn runs(&self) -> Vec<HeldStream> {
        match &self.form {
            // A call that runs it returns once the run has ended, unless it fails.
            Executor::Device(exec) => exec.runs(),
            Executor::Host(host) => {
                host.former_runs.iter().cloned().chain(host.awaited.iter().map(HeldStream::of)).collect()
            }
            Executor::None(none) => none.runs.clone(),
        }
    }

    fn wait_for(&mut self, runs: Vec<HeldStream>) {
        match &mut self.form {
            Executor::Device(exec) => exec.launches.former_runs = runs,
            Executor::Host(host) => host.former_runs = runs,
            Executor::None(_) => {}
        }
    }
}
