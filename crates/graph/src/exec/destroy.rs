//! When executables are destroyed.
//!
//! Dropping a [`GraphExec`](crate::GraphExec) does not wait for its runs: a launch that is queued
//! or running ends as it should. It may wait for another thread that is enqueuing on the stream,
//! and 100 ms in a `WhenIdle` drop, below. Two things are released at different times: what the
//! nodes use, and the driver's executable.
//!
//! # What the nodes use
//!
//! Buffers, kernels, events and other owners are released in the drop if the runs have ended by
//! then, and by the reaper otherwise, as well as for drops inside a host function. This does not
//! depend on when the driver's executable is destroyed. See [`resources`](super::resources).
//!
//! # The driver's executable
//!
//! Destroying an executable with conditional nodes makes the driver wait for all work on the
//! device, and the launches of every thread wait with it. So its destruction is deferred:
//!
//! - **Without conditional nodes** (`ExecEnd::AtOnce`): in the drop; or by the reaper soon after,
//!   where the driver does not permit the call, as inside a host function.
//! - **With conditional nodes** (`ExecEnd::Deferred`): deferred, until one of the events below.
//! - **With conditional nodes, of a graph that was lent or adopted** when it was instantiated
//!   (`ExecEnd::WhenIdle`): in the drop if no stream of this library has work in the context,
//!   otherwise by the reaper soon after none has. Other code may instantiate the graph next, and it
//!   knows of no drain.
//!
//! A deferred destruction takes place at the first of these events:
//!
//! | Event | Destroys | If a stream has work |
//! | --- | --- | --- |
//! | [`reaper::drain`](cuda_handles::reaper::drain) | all | the driver waits |
//! | the graph is instantiated again | the graph's own | waits 1 s at most, then `StillRunning` |
//! | the same for the [host loop](crate::HostLoopExec) | the graph's own | the same |
//! | the graph is [lent](crate::Graph::lend) | the graph's own | waits 1 s at most, then lends anyway |
//! | a call fails for lack of device memory | all | they stay |
//!
//! The last row means allocations of device memory, instantiations and launches; the call is made
//! again then. Only streams of the executable's context that this library knows are asked whether
//! they have work.
//!
//! An event that finds a stream with work also asks the reaper to destroy the executable as soon as
//! no stream has any; from then on it needs no further event.
//!
//! Instantiating also destroys an executable without conditional nodes that the reaper still has to
//! destroy, and so does [moving](crate::Frontier::child_moved) the graph into another one. A graph
//! with conditional nodes cannot be moved.
//!
//! Work on streams that this library does not know, or that were dropped, is not seen, and the
//! driver may wait for it in the call for ever. So the call is made on a thread of its own. A
//! `WhenIdle` drop waits for that thread for 100 ms at most, and the events above for as long as
//! [`set_patience`](cuda_handles::set_patience) says; then instantiating fails with
//! [`Busy`](cuda_handles::Error::Busy), and the destruction goes on. A drain makes the call itself.
//!
//! After its context was lost, in a forked child and while the process exits, nothing is destroyed.

use cuda_handles::GraphExecHandle;
use cuda_handles::internal::ExecEnd;
use cuda_sys::CUresult;

use crate::error::{Error, ExecError, Result};
use crate::graph::Graph;
use crate::state::guard::GraphGuard;

impl GraphGuard<'_> {
    /// When the driver destroys an executable that is made of the graph now.
    pub(super) fn exec_end(&self) -> ExecEnd {
        match (self.has_conditionals(), self.is_shared()) {
            (false, _) => ExecEnd::AtOnce,
            (true, false) => ExecEnd::Deferred,
            (true, true) => ExecEnd::WhenIdle,
        }
    }
}

/// Makes a call that a deferred executable may block. If one does, destroys it and retries the
/// call once.
///
/// The graph's own executable blocks the call if the graph can have one at a time. If memory is
/// short, the deferred executables of all graphs do.
pub(crate) fn after_deferred<R>(graph: &Graph, attempt: impl Fn() -> Result<R>) -> Result<R> {
    let outcome = attempt();
    match &outcome {
        Err(Error::Exec(ExecError::OneExecutable { .. })) => {
            let executable = graph.enter()?.executable.clone();
            GraphExecHandle::destroy_deferred(graph.context(), &executable)?;
        }
        Err(Error::Exec(ExecError::Instantiate(error)))
            if error.code == CUresult::CUDA_ERROR_OUT_OF_MEMORY
                && GraphExecHandle::destroy_all_deferred() => {}
        Ok(_) | Err(_) => return outcome,
    }
    attempt()
}
