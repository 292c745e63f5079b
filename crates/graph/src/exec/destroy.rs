//! When executables are destroyed.
//!
//! Dropping a [`GraphExec`](crate::GraphExec) never waits for its runs: a launch that is queued or
//! running ends as it should. Two things go at different times: what the nodes use, and the
//! driver's executable.
//!
//! # What the nodes use
//!
//! Buffers, kernels, events and other owners are released once the last run is over: in the drop,
//! on the thread that drops, if that is so by then (inside a host function, by the reaper), and by
//! the reaper otherwise. This does not depend on when the driver's executable is destroyed. See
//! [`resources`](super::resources).
//!
//! # The driver's executable
//!
//! Destroying an executable with conditional nodes makes the driver wait for all work on the
//! device, and the launches of every thread wait with it. So its destruction is deferred:
//!
//! | Executable | `ExecEnd` | Destroyed |
//! | --- | --- | --- |
//! | without conditional nodes | `AtOnce` | in the drop; by the reaper soon after where the driver does not permit the call, as inside a host function |
//! | with conditional nodes | `Drained` | **deferred**, until one of the events below |
//! | with conditional nodes, of a graph that was lent or adopted when it was instantiated | `Idle` | in the drop if no stream of this library has work in the context, otherwise by the reaper soon after none has: other code may instantiate the graph next, and it knows of no drain |
//!
//! A deferred destruction takes place at the first of these:
//!
//! | Event | Destroys | If a stream of the context has work |
//! | --- | --- | --- |
//! | [`reaper::drain`](cuda_handles::reaper::drain) | all | the driver waits for it |
//! | the graph is instantiated again, for the device or for the [host loop](crate::HostLoopExec) | the graph's own | waits for 1 s at most, then [`StillRunning`](cuda_handles::Error::StillRunning) |
//! | the graph is [moved](crate::Frontier::child_moved) into another one | the graph's own | as above |
//! | the graph is [lent](crate::Graph::lend) | the graph's own | as above, but no error: the reaper does it |
//! | an allocation, an instantiation or a launch fails for lack of device memory | all | those executables stay |
//!
//! Whoever finds a stream with work also asks the reaper to destroy the executable as soon as no
//! stream has any; from then on it needs no further event.
//!
//! Work on streams that this library does not know, or that were dropped, is not seen. If there is
//! some, the driver waits for it inside the call: in an `Idle` drop on the thread that drops, and
//! elsewhere for as long as [`set_patience`](cuda_handles::set_patience) says.
//!
//! After its context was lost, in a forked child and while the process exits, nothing is destroyed.

use cuda_handles::{ExecEnd, GraphExecHandle};
use cuda_sys::CUresult;

use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::state::guard::GraphGuard;

impl GraphGuard<'_> {
    /// When the driver destroys an executable that is made of the graph now.
    pub(super) fn exec_end(&self) -> ExecEnd {
        match (self.has_conditionals(), self.is_shared()) {
            (false, _) => ExecEnd::AtOnce,
            (true, false) => ExecEnd::Drained,
            (true, true) => ExecEnd::Idle,
        }
    }
}

/// Attempts a call that a deferred executable may stand in the way of. If it does, destroys it and
/// attempts the call once more.
///
/// In the way is the graph's own executable, where it can have one at a time; and, for lack of
/// memory, those of all graphs.
pub(crate) fn after_deferred<R>(graph: &Graph, attempt: impl Fn() -> Result<R>) -> Result<R> {
    let outcome = attempt();
    match &outcome {
        Err(Error::OneExecutable { .. }) => {
            let executable = graph.enter()?.executable.clone();
            GraphExecHandle::destroy_waiting(graph.context(), &executable)?;
        }
        Err(Error::Instantiate(error))
            if error.code == CUresult::CUDA_ERROR_OUT_OF_MEMORY && GraphExecHandle::make_room() => {}
        Ok(_) | Err(_) => return outcome,
    }
    attempt()
}
