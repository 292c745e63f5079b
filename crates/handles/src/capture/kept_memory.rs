//! Memory that a value keeps, and scratch memory that it keeps as graphs do.

use core::ops::Deref;
use std::sync::Arc;

use super::captured_memory::block_of;
use super::scratch::Block;
use crate::graph::Owner;
use crate::memory::Allocation;

/// Memory, kept alive. As a holder of scratch memory it counts, unless it [is
/// kept](Self::keep_as_capture) as the graphs of captures keep that.
#[derive(Clone, Debug)]
pub struct KeptMemory(Kept);

#[derive(Clone, Debug)]
enum Kept {
    Held(Arc<Allocation>),
    Scratch(Arc<Block>),
}

impl KeptMemory {
    /// Keeps memory that an open capture was given as the capture and its graph keep it: the
    /// capture gives it to later allocations once its other holders are gone. Other memory stays
    /// held. For a value that is a part of this graph, and that shares the order of its launches.
    pub fn keep_as_capture(&mut self, capture: u64) {
        let block = match &self.0 {
            Kept::Held(memory) if memory.is_scratch() => block_of(capture, memory),
            Kept::Held(_) | Kept::Scratch(_) => None,
        };
        if let Some(block) = block {
            self.0 = Kept::Scratch(block);
        }
    }
}

impl Deref for KeptMemory {
    type Target = Arc<Allocation>;

    #[inline]
    fn deref(&self) -> &Arc<Allocation> {
        match &self.0 {
            Kept::Held(memory) => memory,
            Kept::Scratch(block) => &block.0,
        }
    }
}

impl From<&Arc<Allocation>> for KeptMemory {
    #[inline]
    fn from(memory: &Arc<Allocation>) -> Self {
        Self(Kept::Held(Arc::clone(memory)))
    }
}

impl From<KeptMemory> for Owner {
    #[inline]
    fn from(KeptMemory(kept): KeptMemory) -> Self {
        match kept {
            Kept::Held(memory) => Self::Allocation(memory),
            Kept::Scratch(block) => Self::shared(block),
        }
    }
}
