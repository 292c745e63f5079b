//! Freeing an allocation when it is dropped.

use std::sync::Arc;

use cuda_sys::{CUresult, Call};

use super::allocation::{Allocation, SHARED};
use super::backing::{Backing, HostMemory};
use super::graph_life::Freeing;
use super::pool::MemPool;
use crate::context::capture_mode;
use crate::destroy::{self, Node};
use crate::error::Error;
use crate::reclaim::{self, FreeKind, FreedWith, PendingFree, host_cache};
use crate::sync::process;

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        if !destroy::may_call(self.context()) {
            self.leave();
            return;
        }
        match (&self.backing, *self.state.get_mut() & SHARED != 0) {
            (Backing::Pooled(pool), false) if self.free_at_home(pool.as_ref()) => {}
            (Backing::Graph(_), _) => {}
            (Backing::Output(_), false) if self.free_output_at_home() => self.end_life(),
            (Backing::Host(HostMemory { block: Some(block), .. }), false) => host_cache::give(block.clone()),
            (Backing::Foreign(_) | Backing::Variable { .. }, false) => {}
            (
                Backing::Pooled(_)
                | Backing::Plain
                | Backing::Host(_)
                | Backing::Foreign(_)
                | Backing::Variable { .. }
                | Backing::Imported(_)
                | Backing::Output(_),
                _,
            ) => self.free_later(),
        }
    }
}

impl Allocation {
    /// At the end of the process, and after the loss of one device of several, work may still be
    /// using memory of other owners: these stay.
    #[cold]
    fn leave(&self) {
        if !self.is_shared() || !process::is_exiting() && !reclaim::may_run_elsewhere(self.context()) {
            return;
        }
        match &self.backing {
            Backing::Foreign(owner) | Backing::Variable { owner, .. } => core::mem::forget(owner.clone()),
            Backing::Host(HostMemory { block: Some(block), .. }) => core::mem::forget(block.owner.clone()),
            Backing::Plain
            | Backing::Pooled(_)
            | Backing::Graph(_)
            | Backing::Output(_)
            | Backing::Imported(_)
            | Backing::Host(_) => {}
        }
    }

    /// Frees it in the order of its home. False if that has to be left to the reaper.
    fn free_at_home(&self, pool: Option<&MemPool>) -> bool {
        let Some(home) = self.home() else { return false };
        let context = home.context();
        // The driver crashes if another thread ends a capture of the stream meanwhile.
        let Some(access) = home.raw_stream().try_enqueue() else { return false };
        let mode = capture_mode::relaxed(context.driver());
        // SAFETY: the memory is ours, and only its home has used it: every use is in front of this
        // point.
        let code = unsafe { context.driver().cuMemFreeAsync(self.address, home.as_raw()) };
        drop(mode);
        drop(access);
        if code == CUresult::CUDA_ERROR_NOT_PERMITTED {
            return false;
        }
        match context.check(Call::cuMemFreeAsync, code) {
            Err(Error::Driver { code, .. }) if home.is_capturing() || is_of_capture(code) => return false,
            Err(error) => {
                if let Backing::Output(memory) = &self.backing {
                    memory.note_failure(&error);
                }
                destroy::report("freeing a buffer", error);
            }
            Ok(()) => {}
        }
        if let Some(pool) = pool {
            pool.note_free(home);
        }
        true
    }

    /// [`free_at_home`](Self::free_at_home) for memory that a launch left. While its home captures,
    /// the driver would take the free for a node of the captured graph.
    fn free_output_at_home(&self) -> bool {
        let Some(home) = self.home() else { return false };
        let Ok(_access) = home.raw_stream().enqueue() else { return false };
        home.refuse_capture("freeing what a launch left").is_ok() && self.free_at_home(None)
    }

    /// The request that leaves the free to the reaper.
    pub(super) fn new_free_request(&self) -> Box<Node<PendingFree>> {
        let pool = |pool: &MemPool| {
            pool.expect_fenced_frees();
            Arc::new(pool.clone()) as Arc<dyn FreedWith>
        };
        let device = |pool| FreeKind::Device { address: self.address, keep: pool };
        let what = match &self.backing {
            Backing::Pooled(own) => device(own.as_ref().map(pool)),
            Backing::Imported(own) => device(Some(pool(own))),
            Backing::Host(HostMemory { block: Some(block), .. }) => FreeKind::Host(block.clone()),
            Backing::Foreign(owner) | Backing::Variable { owner, .. } => FreeKind::Owned(owner.clone()),
            Backing::Output(memory) => device(Some(Arc::new(Freeing(Arc::clone(memory))))),
            Backing::Plain | Backing::Host(_) | Backing::Graph(_) => device(None),
        };
        let home = self.home().map(|home| Arc::clone(home.raw_stream()));
        Node::new(PendingFree { context: self.context().clone(), home, what })
    }

    /// The driver has the free: the next launch may follow.
    fn end_life(&mut self) {
        // Drop the request first: its drop reports that the reaper has finished.
        drop(self.free_request.take());
        if let Backing::Output(memory) = &self.backing {
            memory.freed();
        }
    }

    fn free_later(&mut self) {
        let request = self.free_request.take().unwrap_or_else(|| self.new_free_request());
        if let Backing::Output(memory) = &self.backing {
            memory.queued();
        }
        reclaim::push_free(request);
    }
}

/// Whether a free may have been refused with this because its stream was capturing then, whether or
/// not it still is: a capture can end, or begin anew, before anybody asks.
fn is_of_capture(code: CUresult) -> bool {
    let first = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.0;
    let last = CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD.0;
    matches!(code, CUresult::CUDA_ERROR_INVALID_VALUE | CUresult::CUDA_ERROR_ILLEGAL_STATE)
        || (first..=last).contains(&code.0)
}
