//! A stream of the driver, for as long as a handle or the reaper needs it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cuda_sys::{CUevent_st, CUstream, CUstream_st};

use super::capture_log::LogSlot;
use super::writers::Writers;
use crate::access::{LaunchGate, StreamAccess};
use crate::context::Context;
use crate::destroy::{self, Object};
use crate::registry::Raw;
use crate::sync::{Lock, Rank};

/// The driver's stream behind a handle. It outlives the handle while the reaper has to wait for its
/// work.
#[derive(Debug)]
pub(crate) struct RawStream {
    pub(super) raw: Raw<CUstream_st>,
    pub(super) id: u64,
    pub(super) owned: bool,
    pub(super) context: Context,
    /// Recorded to let other streams wait for this one; made when first needed.
    pub(super) marker: OnceLock<Raw<CUevent_st>>,
    /// Held from recording the marker to waiting for it, so that no thread records it again in
    /// between.
    pub(super) gate: Lock<Gate>,
    /// Whether memory whose home is elsewhere was used here, so that fences have to include it.
    pub(super) in_fence: AtomicBool,
    /// The capture that the stream is in, 0 for none. Written with `access` held exclusively.
    pub(super) capture: AtomicU64,
    /// What that capture notes about its calls. Written with `access` held exclusively, and read
    /// with read access.
    pub(super) log: LogSlot,
    /// Read by threads that enqueue, from loading `capture` to the driver's answer; exclusive for
    /// changes of the capture. So it is always known whether a call is captured. Its flags say that
    /// `capture` is not 0; that other code may let the stream enter a capture, so that the driver
    /// has to be asked; and that the stream takes work in captures only.
    pub(super) access: StreamAccess,
    /// Keeps questions apart from launches of graphs.
    launch_gate: LaunchGate,
    /// Threads waiting for exclusive access.
    pub(super) writers: Writers,
    /// Whether memory was allocated here, whose free may have to wait for this stream.
    pub(super) is_home: AtomicBool,
    /// Whether the marker was recorded since [`is_idle_soon`](Self::is_idle_soon) last asked.
    pub(super) marked: AtomicBool,
    /// Whether other code may capture the stream from now on.
    pub(super) lent: AtomicBool,
    /// The highest number up to which the host has seen everything done.
    pub(super) synced: AtomicU64,
    /// The highest ticket up to which events have shown everything done; the driver has yet to
    /// process frees.
    pub(super) reached: Arc<AtomicU64>,
    /// No handle is left of a stream that is not ours, and the gate could not be had to note that.
    pub(super) lost: AtomicBool,
}

#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// No handle is left. The marker of a stream that is not ours was recorded then, and the stream
    /// may be gone.
    pub(crate) closed: bool,
    /// The marker could not be recorded: whatever waits for this stream waits forever.
    pub(super) unmarked: bool,
}

impl RawStream {
    /// A stream of this library's.
    pub(crate) fn created(context: &Context, raw: CUstream, blocking_with_legacy: bool) -> Self {
        Self::wrap(context, raw, true, blocking_with_legacy)
    }

    /// A stream of other code, which may capture it. Whether it is a blocking stream is not known.
    pub(crate) fn adopted(context: &Context, raw: CUstream) -> Self {
        let stream = Self::wrap(context, raw, false, true);
        stream.set_foreign();
        stream
    }

    fn wrap(context: &Context, raw: CUstream, owned: bool, meets_legacy: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            raw: Raw::new(raw),
            id,
            owned,
            context: context.clone(),
            marker: OnceLock::new(),
            gate: Lock::new(Rank::Gate, Gate::default()),
            in_fence: AtomicBool::new(false),
            capture: AtomicU64::new(0),
            log: LogSlot::default(),
            access: StreamAccess::new(id),
            launch_gate: LaunchGate::new(),
            writers: Writers::new(meets_legacy),
            is_home: AtomicBool::new(false),
            marked: AtomicBool::new(false),
            lent: AtomicBool::new(false),
            synced: AtomicU64::new(0),
            reached: Arc::default(),
            lost: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn raw(&self) -> CUstream {
        self.raw.get()
    }

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Its name in errors.
    #[cold]
    pub(crate) fn name(&self) -> String {
        format!("the stream {:?} (number {})", self.raw, self.id)
    }

    pub(crate) fn is_owned(&self) -> bool {
        self.owned
    }

    #[inline]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    #[inline]
    pub(crate) fn is_in_fence(&self) -> bool {
        self.in_fence.load(Ordering::Acquire)
    }

    /// Only under the lock of the fence's members.
    pub(crate) fn set_in_fence(&self) {
        self.in_fence.store(true, Ordering::Release);
    }

    /// Says that memory is allocated here.
    #[inline]
    pub(crate) fn set_home(&self) {
        if !self.owned {
            self.is_home.store(true, Ordering::Release);
        }
    }

    pub(crate) fn launch_gate(&self) -> &LaunchGate {
        &self.launch_gate
    }

    pub(crate) fn access(&self) -> &StreamAccess {
        &self.access
    }

    pub(crate) fn writers(&self) -> &Writers {
        &self.writers
    }

    /// Notes that the host has seen all up to this count done.
    pub(crate) fn set_synced(&self, up_to: u64) {
        self.synced.fetch_max(up_to, Ordering::AcqRel);
    }

    /// Whether the host has seen the work with this ticket done.
    #[inline]
    pub(crate) fn has_synced(&self, ticket: u64) -> bool {
        self.synced.load(Ordering::Acquire) >= ticket
    }

    /// The counter of this stream, for events that are recorded here.
    #[inline]
    pub(crate) fn reached(&self) -> &Arc<AtomicU64> {
        &self.reached
    }

    /// Whether the work with this ticket was seen done, in whichever way.
    pub(crate) fn has_done(&self, ticket: u64) -> bool {
        self.has_synced(ticket) || self.reached.load(Ordering::Acquire) >= ticket
    }

    /// Says that this library has just enqueued something that takes no time.
    pub(crate) fn set_marked(&self) {
        self.marked.store(true, Ordering::Release);
    }
}

impl Drop for RawStream {
    fn drop(&mut self) {
        if let Some(&marker) = self.marker.get() {
            destroy::destroy(&self.context, Object::Event(marker));
        }
        if self.owned {
            destroy::destroy(&self.context, Object::Stream(self.raw));
        }
    }
}
