//! Memory that is allocated on a capturing stream.

use std::sync::Arc;

use smallvec::SmallVec;

use super::scratch::{Block, Need, Scratch};
use crate::error::Result;
use crate::graph::Owner;
use crate::memory::{Allocation, MemPool, ScratchUse};
use crate::stream::Stream;
use crate::sync::{Lock, Rank, process};

/// The scratch memory of open captures, by their numbers: of those that share some, and of those
/// that have allocated. One entry for each context.
static OPEN: Lock<Vec<(u64, Scratch)>> = Lock::new(Rank::CaptureScratch, Vec::new());

/// A capture begins, with scratch memory that it shares.
pub(super) fn begin(capture: u64, shared: Option<&Scratch>) {
    if let Some(scratch) = shared {
        scratch.begin(capture);
        OPEN.lock().push((capture, scratch.clone()));
    }
}

/// A capture is over. Returns the owners of the memory that was allocated in it, and the scratch
/// memory if it has used some that it shares.
pub(super) fn end(capture: u64) -> (Vec<Owner>, Option<Scratch>) {
    // In a forked child the list may be locked forever.
    if process::is_forked() {
        return (Vec::new(), None);
    }
    let taken: SmallVec<[Scratch; 1]> = {
        let mut open = OPEN.lock();
        open.extract_if(.., |(other, _)| *other == capture).map(|(_, scratch)| scratch).collect()
    };
    let (mut owners, mut shared) = (Vec::new(), None);
    for scratch in taken {
        let memory = scratch.end(capture);
        if scratch.is_shared() && !memory.is_empty() {
            owners.push(Owner::other(scratch.clone()));
            shared = Some(scratch);
        }
        owners.extend(memory);
    }
    (owners, shared)
}

/// Memory that an open capture was given, as the capture keeps it.
pub(super) fn block_of(capture: u64, memory: &Arc<Allocation>) -> Option<Arc<Block>> {
    // In a forked child the list may be locked forever.
    if process::is_forked() {
        return None;
    }
    let open = OPEN.lock();
    let mut scratch = open.iter().filter(|(other, _)| *other == capture);
    scratch.find_map(|(_, scratch)| scratch.block_of(capture, memory))
}

impl Stream {
    /// Memory for an allocation in the capture of this library that the stream is in; `None` if it
    /// is in none. Calls the driver only if the capture has no memory that is free and large
    /// enough.
    pub(crate) fn memory_of_capture(
        &self,
        pool: Option<&MemPool>,
        bytes: usize,
    ) -> Result<Option<Arc<Allocation>>> {
        if self.capture_id().is_none() {
            return Ok(None);
        }
        self.context().ensure_usable()?;
        let Some((capture, scratch)) = self.scratch()? else { return Ok(None) };
        let stream = self.id();
        if let Some(found) = scratch.find(&Need { capture, stream, pool, bytes }) {
            return Ok(Some(found));
        }
        let made = Allocation::scratch(scratch.home()?, pool, bytes, ScratchUse::new(capture, stream))?;
        let made = Arc::new(made);
        scratch.add(capture, &made);
        Ok(Some(made))
    }

    /// The capture that the stream is in, and its scratch memory in the context of the stream.
    fn scratch(&self) -> Result<Option<(u64, Scratch)>> {
        // While this is held, the capture does not end.
        let _access = self.enqueue()?;
        let Some(capture) = self.capture_id() else { return Ok(None) };
        let mut open = OPEN.lock();
        let is_here = |(other, scratch): &&(u64, Scratch)| {
            *other == capture && scratch.context().is_same(self.context())
        };
        if let Some((_, scratch)) = open.iter().find(is_here) {
            return Ok(Some((capture, scratch.clone())));
        }
        let scratch = Scratch::of_one(self.context(), capture);
        open.push((capture, scratch.clone()));
        Ok(Some((capture, scratch)))
    }
}
