//! Scratch memory: what captures allocate, and share.

use core::fmt;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, OnceLock};

use super::scratch_home::home_for;
use super::scratch_runs::{Runs, ScratchTurn};
use crate::context::Context;
use crate::error::Result;
use crate::graph::Owner;
use crate::memory::{Allocation, MemPool};
use crate::stream::Stream;
use crate::sync::{Lock, LockGuard, Rank};

/// Memory that captures share: what one of them has allocated and let go is given to the next, so
/// that the largest need counts, not the sum. This is for programs that capture one graph for each
/// batch size. A clone is another handle of the same memory.
///
/// Captures that [begin with it](super::CaptureOptions::scratch) take all memory that is allocated
/// in them from here; [the module](super#memory-in-a-capture) says how that memory is used again.
///
/// **The graphs of these captures are one line**: each launch waits, on its stream, for the last
/// launch of any of them, on whatever stream that was. So they never overlap, and a launch may
/// overwrite what another one has left in its buffers: whatever is to outlast the next launch is
/// copied before, or is in a buffer that was made before the capture. cuda-graph keeps this order
/// for all executables that it makes of the graphs, of their clones, and of graphs that they are
/// embedded in. Inside one graph, edges have to order embedded graphs with the same scratch memory,
/// and captures into the graph with it, each as a whole. A capture with scratch memory refuses to
/// embed a graph with the same. Who launches by other means keeps the order as well.
///
/// A buffer that is still held when the capture ends is not given to later captures, and neither is
/// one that was used outside of its capture. The memory is freed with the last handle, the graphs
/// and their executables.
#[derive(Clone)]
pub struct Scratch(Arc<Family>);

/// The captures that share memory, and their graphs.
struct Family {
    context: Context,
    /// Whether several captures may share it.
    is_shared: bool,
    /// The home of its memory, once there is some.
    home: OnceLock<Stream>,
    blocks: Lock<Blocks>,
    runs: Runs,
}

#[derive(Default)]
struct Blocks {
    all: Vec<Arc<Block>>,
    /// The open captures, by their numbers, with the memory that each was given.
    captures: Vec<(u64, Vec<Arc<Block>>)>,
}

/// Memory that graphs keep apart from other holders: these are counted by the allocation alone.
#[derive(Debug)]
pub(super) struct Block(pub(super) Arc<Allocation>);

/// Memory that a stream asks for in a capture.
pub(super) struct Need<'p> {
    pub(super) capture: u64,
    pub(super) stream: u64,
    pub(super) pool: Option<&'p MemPool>,
    pub(super) bytes: usize,
}

impl Scratch {
    /// Scratch memory for captures on streams of this context; none yet.
    #[must_use]
    pub fn new(context: &Context) -> Self {
        Self::with(context, true)
    }

    /// The memory of one capture.
    pub(super) fn of_one(context: &Context, capture: u64) -> Self {
        let scratch = Self::with(context, false);
        scratch.begin(capture);
        scratch
    }

    fn with(context: &Context, is_shared: bool) -> Self {
        Self(Arc::new(Family {
            context: context.clone(),
            is_shared,
            home: OnceLock::new(),
            blocks: Lock::new(Rank::ScratchBlocks, Blocks::default()),
            runs: Runs::new(),
        }))
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The bytes that later captures may be given. Memory that stays with a graph alone does not
    /// count.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.blocks().all.iter().map(|block| block.0.bytes()).sum()
    }

    /// The home of its memory, if the host has not seen that the memory is allocated.
    #[doc(hidden)]
    #[must_use]
    pub fn unsettled_home(&self) -> Option<&Stream> {
        self.0.home.get().filter(|home| !home.has_synced(home.issued()))
    }

    /// The right to launch a graph that uses this memory. Several are taken in the order of
    /// [`sort`](Self::sort).
    ///
    /// # Errors
    /// Another thread is launching such a graph: inside a host function (`NOT_PERMITTED`), or all
    /// the time ([`Busy`](crate::Error::Busy)).
    #[doc(hidden)]
    pub fn turn(&self) -> Result<ScratchTurn<'_>> {
        self.0.runs.turn(self.context())
    }

    /// Puts scratch memory into the order in which threads take their turns, each once.
    #[doc(hidden)]
    pub fn sort(all: &mut Vec<Self>) {
        all.sort_unstable_by_key(|scratch| Arc::as_ptr(&scratch.0).addr());
        all.dedup();
    }

    pub(super) fn is_shared(&self) -> bool {
        self.0.is_shared
    }

    /// The home of its memory: a stream that captures nothing.
    pub(super) fn home(&self) -> Result<&Stream> {
        match self.0.home.get() {
            Some(home) => Ok(home),
            None => home_for(&self.0.context).map(|home| self.0.home.get_or_init(|| home)),
        }
    }

    /// A capture begins.
    pub(super) fn begin(&self, capture: u64) {
        self.blocks().captures.push((capture, Vec::new()));
    }

    /// The smallest memory that is free for a need and large enough.
    pub(super) fn find(&self, need: &Need<'_>) -> Option<Arc<Allocation>> {
        let mut blocks = self.blocks();
        let free = blocks.all.iter().filter(|block| block.is_free_for(need));
        let block = Arc::clone(free.min_by_key(|block| block.0.bytes())?);
        let (_, given) = blocks.captures.iter_mut().find(|(capture, _)| *capture == need.capture)?;
        if let Some(scratch) = block.0.scratch_use() {
            scratch.give(need.capture, need.stream);
        }
        let memory = Arc::clone(&block.0);
        if !given.iter().any(|known| Arc::ptr_eq(known, &block)) {
            given.push(block);
        }
        Some(memory)
    }

    /// Memory that an open capture was given.
    pub(super) fn block_of(&self, capture: u64, memory: &Arc<Allocation>) -> Option<Arc<Block>> {
        let blocks = self.blocks();
        let (_, given) = blocks.captures.iter().find(|(open, _)| *open == capture)?;
        given.iter().find(|block| Arc::ptr_eq(&block.0, memory)).cloned()
    }

    /// Adds memory that was allocated for an open capture. If that is over, the memory has no other
    /// owner than the caller.
    pub(super) fn add(&self, capture: u64, memory: &Arc<Allocation>) {
        let mut blocks = self.blocks();
        let Blocks { all, captures } = &mut *blocks;
        if let Some((_, given)) = captures.iter_mut().find(|(open, _)| *open == capture) {
            let block = Arc::new(Block(Arc::clone(memory)));
            given.push(Arc::clone(&block));
            all.push(block);
        }
    }

    /// A capture is over. Returns the owners of the memory that it was given. What somebody holds,
    /// or has used otherwise, is given to no other capture.
    pub(super) fn end(&self, capture: u64) -> Vec<Owner> {
        let mut blocks = self.blocks();
        let Some(index) = blocks.captures.iter().position(|(open, _)| *open == capture) else {
            return Vec::new();
        };
        let (_, given) = blocks.captures.swap_remove(index);
        // The list of the capture has another reference to each.
        blocks.all.retain(|block| {
            let was_given = given.iter().any(|given| Arc::ptr_eq(given, block));
            !was_given || block.is_unheld() && block.take_back()
        });
        drop(blocks);
        match self.0.is_shared {
            false => given.iter().map(|block| Owner::Allocation(Arc::clone(&block.0))).collect(),
            true => given.into_iter().map(Owner::shared).collect(),
        }
    }

    /// Held for moments, over no driver call.
    fn blocks(&self) -> LockGuard<'_, Blocks> {
        self.0.blocks.lock()
    }
}

impl Block {
    fn is_free_for(&self, need: &Need<'_>) -> bool {
        self.0.bytes() >= need.bytes
            && self.0.pool() == need.pool
            && self.is_unheld()
            && self.0.scratch_use().is_some_and(|scratch| scratch.is_for(need.capture, need.stream))
    }

    /// Whether nobody holds the memory but captures and graphs. With the lock of the blocks, so
    /// that it stays so.
    fn is_unheld(&self) -> bool {
        let is_unheld = Arc::strong_count(&self.0) == 1 && Arc::weak_count(&self.0) == 0;
        // Whoever held it did everything before that.
        fence(Ordering::Acquire);
        is_unheld
    }

    /// Takes it back from a capture; false if it was used otherwise.
    fn take_back(&self) -> bool {
        self.0.scratch_use().is_some_and(|scratch| {
            scratch.take_back();
            scratch.is_inside()
        })
    }
}

impl Owner {
    /// The memory that it keeps, also if captures share that.
    #[doc(hidden)]
    #[must_use]
    pub fn memory(&self) -> Option<&Arc<Allocation>> {
        match self {
            Self::Allocation(allocation) => Some(allocation),
            Self::Other(other) => other.downcast_ref::<Block>().map(|block| &block.0),
            Self::Kernel(_)
            | Self::Event(_)
            | Self::Stream(_)
            | Self::Context(_)
            | Self::ExternalSemaphore(_) => None,
        }
    }
}

/// Scratch memory is equal if it is the same.
impl PartialEq for Scratch {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Scratch {}

impl fmt::Debug for Scratch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scratch").field("size_bytes", &self.size_bytes()).finish_non_exhaustive()
    }
}
