//! Owners of memory that the device can use, and when a stream may.

use core::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cuda_sys::CUdeviceptr;

use super::backing::{Backing, HostMemory};
use super::driver_alloc;
use super::graph_life::GraphMemory;
use super::pool::MemPool;
use super::scratch_use::ScratchUse;
use super::space::MemorySpace;
use crate::context::Context;
use crate::destroy::{Kept, Node};
use crate::error::{MemoryKind, Result};
use crate::reclaim::{HostBlock, HostKind, PendingFree};
use crate::stream::Stream;
use crate::sync::{Lock, Rank};

/// Used off its home: freeing it takes a fence.
pub(super) const SHARED: u64 = 1;
/// Its allocation point has been reached: no stream has to wait for it.
pub(super) const SETTLED: u64 = 2;
/// Above the bits is the number of the stream that was made ready last.
pub(super) const LAST: u32 = 2;
/// A number that no stream has.
const NO_HOME: u64 = 0;

/// Memory that the device can use, of any [kind](MemoryKind).
///
/// Pooled memory has a **home**: the stream in whose order it was allocated and first written, and
/// will be freed. The home may use it immediately. Another stream has to wait once until the home
/// has reached the allocation, unless the host has seen that already (the memory is *settled*, for
/// example by [`Stream::synchronize_blocking`] on the home). Memory of the other kinds has no home
/// and is settled from the beginning.
///
/// Code that enqueues work on the memory calls [`ready_on`](Self::ready_on) first; all safe
/// functions of these crates do.
pub struct Allocation {
    pub(super) address: CUdeviceptr,
    pub(super) bytes: usize,
    /// The home's number, which no stream has if there is no home.
    pub(super) home_id: u64,
    /// The home's count when the memory had been allocated and first written.
    pub(super) ticket: u64,
    pub(super) state: AtomicU64,
    pub(super) belongs: Belongs,
    pub(super) backing: Backing,
    /// The request to the reaper to free it, made when it is first shared, so that the drop
    /// allocates nothing.
    pub(super) free_request: OnceLock<Box<Node<PendingFree>>>,
    /// If it was allocated in a capture: where it is used.
    pub(super) scratch: Option<Box<ScratchUse>>,
}

/// Its home or its context. A home holds the context; holding the context as well would cost one
/// more reference count for every buffer.
pub(super) enum Belongs {
    Home(Stream),
    Context(Context),
}

impl Allocation {
    /// Allocates pooled memory on a stream, from a pool or else the device's default pool.
    /// Allocates nothing for 0 bytes.
    pub(super) fn pooled(home: &Stream, pool: Option<&MemPool>, bytes: usize) -> Result<Self> {
        home.context().ensure_usable()?;
        let address = if bytes == 0 { 0 } else { driver_alloc::on_stream(home, pool, bytes)? };
        if let Some(pool) = pool.filter(|_| bytes > 0) {
            pool.expect_frees_on(home);
        }
        let backing = Backing::Pooled(pool.cloned());
        let mut allocation = Self::with(Belongs::Home(home.clone()), address, bytes, backing);
        allocation.stamp();
        Ok(allocation)
    }

    /// Allocates pooled memory for a stream in a capture, with another stream as its home. Even its
    /// home makes it ready, so that each use [is noted](ScratchUse).
    pub(crate) fn scratch(
        home: &Stream,
        pool: Option<&MemPool>,
        bytes: usize,
        scratch: ScratchUse,
    ) -> Result<Self> {
        let mut allocation = Self::pooled(home, pool, bytes)?;
        allocation.home_id = NO_HOME;
        allocation.scratch = Some(Box::new(scratch));
        Ok(allocation)
    }

    /// Allocates plain device memory. Nothing is allocated for 0 bytes.
    pub(super) fn plain(context: &Context, bytes: usize) -> Result<Self> {
        context.ensure_usable()?;
        let address = if bytes == 0 { 0 } else { driver_alloc::plain(context, bytes)? };
        Ok(Self::with(Belongs::Context(context.clone()), address, bytes, Backing::Plain))
    }

    /// Wraps host memory that nothing else uses.
    pub(super) fn host(context: &Context, kind: HostKind, block: Option<HostBlock>, bytes: usize) -> Self {
        let address = block.as_ref().map_or(0, |block| block.start.get().expose_provenance() as CUdeviceptr);
        let address = if bytes == 0 { 0 } else { address };
        let memory = HostMemory {
            block,
            kind,
            viewed: AtomicBool::new(false),
            users: Lock::new(Rank::HostUsers, Default::default()),
        };
        Self::with(Belongs::Context(context.clone()), address, bytes, Backing::Host(memory))
    }

    /// Wraps memory of another owner.
    pub(super) fn foreign(context: &Context, address: CUdeviceptr, bytes: usize, owner: Kept) -> Self {
        Self::with(Belongs::Context(context.clone()), address, bytes, Backing::Foreign(owner))
    }

    /// Wraps a variable of a library.
    pub(crate) fn variable(
        context: &Context,
        address: CUdeviceptr,
        bytes: usize,
        managed: bool,
        owner: Kept,
    ) -> Self {
        let backing = Backing::Variable { owner, managed };
        Self::with(Belongs::Context(context.clone()), address, bytes, backing)
    }

    /// Wraps memory that was imported from another process into `pool`.
    pub(crate) fn imported(pool: &MemPool, address: CUdeviceptr, bytes: usize) -> Self {
        let context = pool.context().clone();
        Self::with(Belongs::Context(context), address, bytes, Backing::Imported(pool.clone()))
    }

    /// Memory of an allocation node.
    pub(super) fn of_graph(
        context: &Context,
        address: CUdeviceptr,
        bytes: usize,
        memory: Arc<GraphMemory>,
    ) -> Self {
        Self::with(Belongs::Context(context.clone()), address, bytes, Backing::Graph(memory))
    }

    /// Memory of an allocation node that a launch on `home`, enqueued just now, has left.
    pub(super) fn output(node: &Self, memory: &Arc<GraphMemory>, home: &Stream) -> Self {
        let (address, bytes) = (node.address, node.bytes);
        let backing = Backing::Output(Arc::clone(memory));
        let mut output = Self::with(Belongs::Home(home.clone()), address, bytes, backing);
        output.stamp();
        output
    }

    /// The state of memory of an allocation node.
    #[inline]
    pub(super) fn graph_memory(&self) -> Option<&Arc<GraphMemory>> {
        self.backing.graph()
    }

    /// Gives up the memory without freeing it: its new owner does.
    pub(super) fn forget(&mut self) {
        self.bytes = 0;
    }

    fn with(belongs: Belongs, address: CUdeviceptr, bytes: usize, backing: Backing) -> Self {
        let (home_id, state) = match &belongs {
            Belongs::Home(home) => (home.id(), 0),
            Belongs::Context(_) => (NO_HOME, SETTLED),
        };
        Self {
            address,
            bytes,
            home_id,
            ticket: 0,
            state: AtomicU64::new(state),
            belongs,
            backing,
            free_request: OnceLock::new(),
            scratch: None,
        }
    }

    /// Counts the call just enqueued on the home as part of the allocation.
    pub(super) fn stamp(&mut self) {
        match &self.belongs {
            Belongs::Home(home) if self.bytes > 0 => self.ticket = home.ticket(),
            Belongs::Home(_) | Belongs::Context(_) => *self.state.get_mut() = SETTLED,
        }
    }

    /// The start address; 0 if it has no bytes.
    #[must_use]
    #[inline]
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// Its size in bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The kind of memory.
    #[must_use]
    pub fn kind(&self) -> MemoryKind {
        match &self.backing {
            Backing::Pooled(_) => MemoryKind::Pooled,
            Backing::Plain => MemoryKind::Plain,
            Backing::Host(HostMemory { kind: HostKind::Pinned, .. }) => MemoryKind::Pinned,
            Backing::Host(HostMemory { kind: HostKind::Registered, .. }) => MemoryKind::Registered,
            Backing::Host(HostMemory { kind: HostKind::Managed, .. }) => MemoryKind::Managed,
            Backing::Foreign(_) => MemoryKind::Foreign,
            Backing::Variable { managed: false, .. } => MemoryKind::Global,
            Backing::Variable { managed: true, .. } => MemoryKind::Managed,
            Backing::Imported(_) => MemoryKind::Imported,
            Backing::Graph(_) | Backing::Output(_) => MemoryKind::Graph,
        }
    }

    /// The space it lies in.
    #[must_use]
    pub fn space(&self) -> MemorySpace {
        match &self.backing {
            Backing::Graph(memory) | Backing::Output(memory) => memory.space(),
            Backing::Pooled(_)
            | Backing::Plain
            | Backing::Host(_)
            | Backing::Foreign(_)
            | Backing::Variable { .. }
            | Backing::Imported(_) => self.kind().space(),
        }
    }

    /// Whether memory of the device belongs to a context in the driver's books, as memory of pools
    /// does not; `None` where that is not known. Copies in executables keep it. For the crates
    /// above this one.
    #[doc(hidden)]
    #[must_use]
    pub fn has_context(&self) -> Option<bool> {
        match &self.backing {
            Backing::Pooled(_) => Some(false),
            Backing::Plain | Backing::Host(HostMemory { kind: HostKind::Managed, .. }) => Some(true),
            // The host's memory is a kind of its own.
            Backing::Host(HostMemory { kind: HostKind::Pinned | HostKind::Registered, .. })
            | Backing::Foreign(_)
            | Backing::Variable { .. }
            | Backing::Imported(_)
            | Backing::Graph(_)
            | Backing::Output(_) => None,
        }
    }

    /// The context it belongs to.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        match &self.belongs {
            Belongs::Home(home) => home.context(),
            Belongs::Context(context) => context,
        }
    }

    /// The stream in whose order it was allocated and will be freed; pooled memory has one.
    #[must_use]
    #[inline]
    pub fn home(&self) -> Option<&Stream> {
        match &self.belongs {
            Belongs::Home(home) => Some(home),
            Belongs::Context(_) => None,
        }
    }

    /// The hierarchy of graphs a launch of which has left it, by its number.
    #[doc(hidden)]
    #[must_use]
    pub fn output_of(&self) -> Option<u64> {
        match &self.backing {
            Backing::Output(memory) => Some(memory.graph()),
            Backing::Graph(_)
            | Backing::Pooled(_)
            | Backing::Plain
            | Backing::Host(_)
            | Backing::Foreign(_)
            | Backing::Variable { .. }
            | Backing::Imported(_) => None,
        }
    }

    /// The pool it came from, unless it came from the device's default pool.
    #[must_use]
    pub fn pool(&self) -> Option<&MemPool> {
        match &self.backing {
            Backing::Pooled(pool) => pool.as_ref(),
            Backing::Imported(pool) => Some(pool),
            Backing::Plain
            | Backing::Host(_)
            | Backing::Foreign(_)
            | Backing::Variable { .. }
            | Backing::Graph(_)
            | Backing::Output(_) => None,
        }
    }

    /// Whether the host has seen that the allocation point was reached. No driver call.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.state.load(Ordering::Acquire) & SETTLED != 0
            || self.home().is_none_or(|home| home.has_synced(self.ticket))
    }

    /// Whether it was made ready for a stream other than its home; memory without one is shared by
    /// its first use.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.state.load(Ordering::Acquire) & SHARED != 0
    }

    /// Where it is used, if it was allocated in a capture.
    pub(crate) fn scratch_use(&self) -> Option<&ScratchUse> {
        self.scratch.as_deref()
    }

    /// Whether it was allocated in a capture and is used only there so far. The capture keeps such
    /// memory as a whole, until its graph does: the records of its calls need not.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn is_scratch(&self) -> bool {
        self.scratch_use().is_some_and(ScratchUse::is_inside)
    }

    /// The host's pointer, if the host can address it.
    pub(super) fn host_start(&self) -> Option<*mut core::ffi::c_void> {
        self.host_block().map(|block| block.start.get())
    }

    /// The block of host memory, for its end.
    pub(super) fn host_block(&self) -> Option<&HostBlock> {
        self.backing.host()?.block.as_ref()
    }

    /// Takes the block of host memory for another owner, and everything that names it. The memory
    /// must not be shared.
    pub(super) fn take_host_block(&mut self) -> Option<HostBlock> {
        // It may have been shared once.
        drop(self.free_request.take());
        self.forget();
        self.backing.host_mut()?.block.take()
    }

    /// Whether host code views it; only host memory has this.
    pub(super) fn view_flag(&self) -> Option<&AtomicBool> {
        self.backing.host().map(|memory| &memory.viewed)
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Allocation")
            .field("kind", &self.kind())
            .field("address", &format_args!("{:#x}", self.address))
            .field("bytes", &self.bytes)
            .field("home", &self.home().map(Stream::id))
            .field("settled", &self.is_settled())
            .field("shared", &self.is_shared())
            .finish()
    }
}
