//! The life of the memory of an allocation node, from launch to launch.

use core::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::space::MemorySpace;
use crate::context::Device;
use crate::error::Error;
use crate::reclaim::FreedWith;
use crate::stream::Stream;
use crate::sync::{Lock, Rank};

/// The state of the memory that the last launch left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Life {
    /// None is left: it was freed in the order of its home, or there was no launch.
    Free,
    /// A buffer owns it.
    Out,
    /// An executable has it that frees it at its next launch.
    Left,
    /// The reaper will free it.
    Queued,
    /// The reaper has freed it in its lane, which no stream has waited for.
    Fenced,
}

/// The memory of one allocation node.
pub(super) struct GraphMemory {
    /// The hierarchy of graphs that the node is in.
    graph: AtomicU64,
    space: MemorySpace,
    /// The devices whose kernels may use it, beside its context's.
    devices: Box<[Device]>,
    life: AtomicU8,
    /// The stream of the last launch that left some.
    last: Lock<Option<Stream>>,
    /// Why some could not be freed: it lives on, and no launch can be made any more.
    failed: OnceLock<Error>,
}

impl GraphMemory {
    pub(super) fn new(graph: u64, space: MemorySpace, devices: Box<[Device]>) -> Arc<Self> {
        Arc::new(Self {
            graph: AtomicU64::new(graph),
            space,
            devices,
            life: AtomicU8::new(Life::Free as u8),
            last: Lock::new(Rank::GraphMemory, None),
            failed: OnceLock::new(),
        })
    }

    #[inline]
    pub(super) fn graph(&self) -> u64 {
        self.graph.load(Ordering::Relaxed)
    }

    pub(super) fn move_to(&self, graph: u64) {
        self.graph.store(graph, Ordering::Relaxed);
    }

    pub(super) fn space(&self) -> MemorySpace {
        self.space
    }

    /// Whether kernels of a device may use it.
    pub(super) fn is_for(&self, device: Device) -> bool {
        self.devices.contains(&device)
    }

    pub(super) fn life(&self) -> Life {
        let life = self.life.load(Ordering::Acquire);
        let all = [Life::Free, Life::Out, Life::Left, Life::Queued, Life::Fenced];
        all.into_iter().find(|known| *known as u8 == life).unwrap_or(Life::Out)
    }

    fn set(&self, life: Life) {
        self.life.store(life as u8, Ordering::Release);
    }

    pub(super) fn last(&self) -> Option<Stream> {
        self.last.lock().clone()
    }

    /// A launch on `home`, enqueued just now, has left some.
    pub(super) fn leave(&self, home: &Stream, life: Life) {
        self.set(life);
        let mut last = self.last.lock();
        // The one before goes after the lock.
        let _before = last.replace(home.clone());
        drop(last);
    }

    /// The free of memory that a launch left has failed.
    pub(super) fn note_failure(&self, error: &Error) {
        // The first cause counts.
        let _ = self.failed.set(error.clone());
    }

    pub(super) fn failure(&self) -> Option<&Error> {
        self.failed.get()
    }

    /// The free was called in the order of the home.
    pub(super) fn freed(&self) {
        self.set(Life::Free);
    }

    /// The reaper gets it.
    pub(super) fn queued(&self) {
        self.set(Life::Queued);
    }
}

/// Part of the request to the reaper to free memory that a launch left.
pub(crate) struct Freeing(pub(super) Arc<GraphMemory>);

impl FreedWith for Freeing {
    fn free_failed(&self, error: &Error) {
        self.0.note_failure(error);
    }
}

impl fmt::Debug for Freeing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Freeing")
    }
}

impl Drop for Freeing {
    fn drop(&mut self) {
        if self.0.life() == Life::Queued {
            self.0.set(Life::Fenced);
        }
    }
}
