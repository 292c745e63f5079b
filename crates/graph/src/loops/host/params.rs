//! Graph parameters of an executable in which the host decides.

use cuda_handles::{Allocation, AsStream, Event, Stream};
use cuda_sys::{CUgraphNode, CUgraphNodeParams, Call};

use super::segment::Segment;
use super::{Executor, HostExec, HostLoopExec};
use crate::error::Result;
use crate::exec::launch::wait_for_home;
use crate::graph::Graph;
use crate::param::graph_param::{GraphParam, ParamArg, ParamType, Stored};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::update::apply::{ParamTarget, apply};
use crate::update::params::{ParamScope, ParamValues, ValueList};

impl HostLoopExec {
    /// Sets a parameter for the runs from the next one on; see [`GraphExec::set`]. The host also
    /// tests the memory that was set.
    ///
    /// If the host decides, a replaced value is let go by the next run. The exception is a value
    /// that a failed run may still use: the reaper lets it go behind that run, after the next run
    /// that succeeds, or after 64 runs, or with the executable.
    ///
    /// # Errors
    /// The errors of [`GraphExec::set`].
    ///
    /// [`GraphExec::set`]: crate::GraphExec::set
    pub fn set<T: ParamType + ?Sized>(
        &mut self,
        param: &GraphParam<T>,
        value: impl ParamArg<T>,
    ) -> Result<()> {
        match &mut self.form {
            Executor::Device(exec) => exec.set(param, value),
            Executor::None(none) => Err(none.error()),
            Executor::Host(_) => {
                let Stored(value) = T::stored(value.into_initial());
                let mut list = ValueList::default();
                if let Some(scope) = self.scope() {
                    list.0.push((param.placeholder.number(), scope.checked(param, value)?));
                }
                self.put(list);
                Ok(())
            }
        }
    }

    /// [Sets](Self::set) parameters and [runs](Self::run_blocking). Parameters that are not named
    /// keep their values. **Waits** for the end of the run.
    ///
    /// # Errors
    /// The errors of [`set`](Self::set): then no parameter is set, and nothing has run. The errors
    /// of [`run_blocking`](Self::run_blocking): then the parameters stay set.
    #[doc(alias = "cuGraphLaunch")]
    #[doc(alias = "cudaGraphLaunch")]
    pub fn run_blocking_with(&mut self, stream: &impl AsStream, values: impl ParamValues) -> Result<()> {
        let mut list = ValueList::default();
        match &mut self.form {
            Executor::Device(exec) => exec.set_all(values)?,
            Executor::None(none) => return Err(none.error()),
            Executor::Host(_) => {
                if let Some(scope) = self.scope() {
                    values.list(&scope, &mut list)?;
                }
                self.put(list);
            }
        }
        self.run_blocking(stream)
    }

    /// The scope of values, if the host decides.
    fn scope(&self) -> Option<ParamScope<'_>> {
        match &self.form {
            Executor::Device(_) | Executor::None(_) => None,
            Executor::Host(host) => Some(ParamScope {
                params: host.owners.since.params.as_deref(),
                source: &self.source,
                context: &self.context,
                is_lent: false,
            }),
        }
    }

    fn put(&mut self, ValueList(list): ValueList) {
        if let Executor::Host(host) = &mut self.form
            && let Some(params) = &mut host.owners.since.params
        {
            list.into_iter().for_each(|(param, value)| params.set(param, value));
        }
    }
}

impl HostExec {
    /// Updates the segments whose parameters have changed.
    pub(super) fn apply_params(&mut self, graph: Option<Graph>) -> Result<()> {
        let Self { program, awaited, owners, .. } = self;
        let since = &mut owners.since;
        let Some(params) = since.params.as_mut().filter(|params| params.is_pending()) else { return Ok(()) };
        let mut target = HostTarget { segments: &mut program.segments, awaited };
        apply(&mut target, graph.as_ref(), params, &mut since.replaced)?;
        owners.retire_replaced();
        Ok(())
    }
}

/// The parts of an executable that its parameters change.
struct HostTarget<'e> {
    segments: &'e mut [Segment],
    awaited: &'e mut Vec<Stream>,
}

impl HostTarget<'_> {
    /// The segment with a node, and the node there.
    fn find(&mut self, id: NodeId) -> Option<(&mut Segment, CUgraphNode)> {
        let mut segments = self.segments.iter_mut();
        segments.find_map(|segment| segment.bound.0.get(&id).copied().map(|node| (segment, node)))
    }
}

impl ParamTarget for HostTarget<'_> {
    fn has(&self, id: NodeId) -> bool {
        self.segments.iter().any(|segment| segment.bound.0.contains_key(&id))
    }

    fn decides(&self, _: NodeId) -> bool {
        // Nodes with the handle of a condition are refused where the host decides.
        false
    }

    fn is_enabled(&self, _: NodeId) -> bool {
        // Parameters alone disable nodes here, and fills of rows otherwise.
        true
    }

    fn set_params(&mut self, guard: &GraphGuard<'_>, id: NodeId, raw: &mut CUgraphNodeParams) -> Result<()> {
        let Some((segment, node)) = self.find(id) else { return Ok(()) };
        // SAFETY: the executable is live, and the exclusive reference keeps other calls on it away.
        // The node is of the graph that it was made of, which lives as long. The parameters are
        // complete for its type, and everything that they point to outlives the call.
        let code = unsafe { guard.driver().cuGraphExecNodeSetParams(segment.exec.as_raw(), node, raw) };
        guard.answer(Call::cuGraphExecNodeSetParams, code)
    }

    fn set_enabled(&mut self, guard: &GraphGuard<'_>, id: NodeId, enabled: bool) -> Result<()> {
        let Some((segment, node)) = self.find(id) else { return Ok(()) };
        let exec = segment.exec.as_raw();
        // SAFETY: as for its parameters.
        let code = unsafe { guard.driver().cuGraphNodeSetEnabled(exec, node, enabled.into()) };
        guard.answer(Call::cuGraphNodeSetEnabled, code)
    }

    fn set_event(&mut self, id: NodeId, event: Event) -> Option<Event> {
        self.find(id)?.0.events.set(id, event)
    }

    fn wait_for_home(&mut self, memory: &Allocation) {
        wait_for_home(self.awaited, memory);
    }
}
