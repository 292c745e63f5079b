//! One allocation: its bytes, and where in its life it is.

use std::alloc::Layout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::memory::shared_file::{Mapping, SharedFile};

/// What memory holds that nobody has written.
pub(crate) const UNWRITTEN: u8 = 0xCD;

static EPOCH: AtomicU64 = AtomicU64::new(1);

/// Grows when anything is freed.
pub(crate) fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// Where memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// `cuMemAlloc`.
    Plain,
    /// `cuMemAllocAsync`.
    Pool,
    /// An allocation node of a graph.
    GraphNode,
    /// `cuMemHostAlloc`.
    Pinned,
    /// `cuMemHostRegister`.
    Registered,
    /// `cuMemAllocManaged`.
    Managed,
    /// A variable of a module.
    Variable,
    /// Memory of another process, or of a pool that was imported.
    Imported,
}

impl Origin {
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Plain => "device allocation",
            Self::Pool => "pool allocation",
            Self::GraphNode => "graph allocation",
            Self::Pinned => "pinned host allocation",
            Self::Registered => "registered host range",
            Self::Managed => "managed allocation",
            Self::Variable => "module variable",
            Self::Imported => "imported allocation",
        }
    }

    /// Whether the address is a host pointer.
    pub(crate) fn is_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Registered | Self::Managed)
    }

    /// Whether the memory counts as the device's.
    pub(crate) fn is_on_device(self) -> bool {
        !matches!(self, Self::Pinned | Self::Registered)
    }

    /// Whether it takes room on the device. That of graphs is counted by what they have mapped.
    pub(super) fn is_counted(self) -> bool {
        self.is_on_device() && !matches!(self, Self::Imported | Self::GraphNode)
    }
}

pub(super) const PENDING: u8 = 0;
pub(super) const LIVE: u8 = 1;
const GONE: u8 = 2;
/// Memory of a graph that was freed, at an address where a later node of the same launch, or a
/// later launch, allocates again.
pub(super) const RETIRED: u8 = 3;

/// Where the bytes of an allocation come from.
#[derive(Debug)]
pub(super) enum Backing {
    Heap(Layout),
    /// They are the user's.
    User,
    /// A piece of a file; the process that made it gives it back.
    InFile {
        file: Arc<SharedFile>,
        offset: u64,
        _mapping: Mapping,
        is_own: bool,
    },
}

/// What to allocate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) origin: Origin,
    pub(crate) len: usize,
    pub(crate) device: i32,
    pub(crate) context: u64,
    pub(crate) pool: u64,
    pub(crate) flags: u32,
}

/// One allocation. Its bytes stay as long as anybody holds it, also after it was freed.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) start: u64,
    pub(crate) len: usize,
    pub(crate) origin: Origin,
    pub(crate) device: i32,
    /// The context it belongs to.
    pub(crate) context: u64,
    /// The pool, of pool memory.
    pub(crate) pool: u64,
    /// Flags of the call that made it.
    pub(crate) flags: u32,
    /// Counts up, never reused.
    pub(crate) id: u64,
    host: *mut u8,
    backing: Backing,
    writable: AtomicBool,
    state: AtomicU8,
    /// A free is on its way in some stream.
    free_queued: AtomicBool,
    /// Of memory of a graph: the node that allocates it, and the one that freed it last (0 if none
    /// did), for messages.
    allocated_by: AtomicU64,
    freed_by: AtomicU64,
}

// SAFETY: the bytes behind `host` are only accessed by relaxed atomics, or by the user under the
// rules of the interface.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Drop for Allocation {
    fn drop(&mut self) {
        match &self.backing {
            // SAFETY: allocated with this layout in `allocate_at`, and nobody holds it any more.
            Backing::Heap(layout) => unsafe { std::alloc::dealloc(self.host, *layout) },
            Backing::InFile { file, offset, is_own: true, .. } => file.discard(*offset, self.len),
            Backing::InFile { .. } | Backing::User => {}
        }
    }
}

impl Allocation {
    pub(super) fn new(request: Request, start: u64, host: *mut u8, backing: Backing, state: u8) -> Arc<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        Arc::new(Self {
            start,
            len: request.len,
            origin: request.origin,
            device: request.device,
            context: request.context,
            pool: request.pool,
            flags: request.flags,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            host,
            backing,
            writable: AtomicBool::new(true),
            state: AtomicU8::new(state),
            free_queued: AtomicBool::new(false),
            allocated_by: AtomicU64::new(0),
            freed_by: AtomicU64::new(0),
        })
    }

    pub(super) fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }

    /// The device may only read it from now on.
    pub(super) fn protect(&self) {
        self.writable.store(false, Ordering::Relaxed);
    }

    /// The memory is freed; false if it was before.
    pub(super) fn set_gone(&self) -> bool {
        if self.state.swap(GONE, Ordering::AcqRel) == GONE {
            return false;
        }
        EPOCH.fetch_add(1, Ordering::AcqRel);
        true
    }

    pub(crate) fn end(&self) -> u64 {
        self.start + self.len as u64
    }

    pub(crate) fn host(&self) -> *mut u8 {
        self.host
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.writable.load(Ordering::Relaxed)
    }

    /// The file that the allocation lies in and its place there, if this process made it and others
    /// can have it.
    pub(crate) fn shared_at(&self) -> Option<(&SharedFile, u64)> {
        match &self.backing {
            Backing::InFile { file, offset, is_own: true, .. } => Some((file, *offset)),
            _ => None,
        }
    }

    /// The allocation point of pool memory has been reached.
    pub(crate) fn reach(&self) {
        let _ = self.state.compare_exchange(PENDING, LIVE, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Notes that a free is on its way; false if one is already.
    pub(crate) fn queue_free(&self) -> bool {
        !self.free_queued.swap(true, Ordering::AcqRel)
    }

    /// The allocation node that will make the memory.
    pub(crate) fn await_node(&self, node: u64) {
        self.allocated_by.store(node, Ordering::Relaxed);
    }

    /// An allocation node makes the memory, for the first time or again: what was in it is gone.
    pub(crate) fn renew(&self, node: u64) {
        self.await_node(node);
        if self.state.load(Ordering::Acquire) != PENDING {
            self.forget_bytes();
        }
        self.state.store(LIVE, Ordering::Release);
    }

    /// Memory of a graph ends here, to be made again by an allocation node; `free` is the free node
    /// that ended it, if one did.
    pub(crate) fn retire(&self, free: u64) {
        self.freed_by.store(free, Ordering::Relaxed);
        self.state.store(RETIRED, Ordering::Release);
        EPOCH.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether it is memory of a graph that its allocation node has yet to make, for the first time
    /// or again.
    pub(super) fn is_awaited(&self) -> bool {
        self.origin == Origin::GraphNode && matches!(self.state.load(Ordering::Acquire), PENDING | RETIRED)
    }

    /// Makes all bytes zero.
    pub(crate) fn clear(&self) {
        self.overwrite(0);
    }

    fn forget_bytes(&self) {
        self.overwrite(UNWRITTEN);
    }

    /// Overwrites all bytes; work that still uses them may run meanwhile.
    fn overwrite(&self, byte: u8) {
        let fill = u64::from_ne_bytes([byte; 8]);
        let noun = self.len / 8;
        for word in 0..noun {
            // SAFETY: inside the allocation, which is aligned for words, and whose bytes are only
            // accessed by atomics.
            unsafe { AtomicU64::from_ptr(self.host.cast::<u64>().add(word)).store(fill, Ordering::Relaxed) };
        }
        for at in noun * 8..self.len {
            // SAFETY: as above.
            unsafe { AtomicU8::from_ptr(self.host.add(at)).store(byte, Ordering::Relaxed) };
        }
    }

    /// The free that was on its way is one of an earlier life of the memory.
    pub(crate) fn unqueue_free(&self) {
        self.free_queued.store(false, Ordering::Release);
    }

    /// Whether calls see it: memory of a graph is gone for them as soon as a call frees it.
    pub(crate) fn is_visible(&self) -> bool {
        self.origin != Origin::GraphNode || !self.free_queued.load(Ordering::Acquire)
    }

    /// Why memory that is there may not be used now.
    pub(super) fn misuse(&self, state: u8) -> String {
        let description = self.description();
        if self.origin != Origin::GraphNode {
            return format!(
                "{description} is used before its allocation point is reached: the stream of the use does not wait for the stream of the allocation"
            );
        }
        let (node, free) = (self.allocated_by.load(Ordering::Relaxed), self.freed_by.load(Ordering::Relaxed));
        match (state, free) {
            (RETIRED, 1..) => format!(
                "{description} was freed by free node {free:#x}, and allocation node {node:#x} has not been reached since: the use comes after the free"
            ),
            _ => format!(
                "{description} is used before its allocation node {node:#x} is reached: the use is not ordered after that node"
            ),
        }
    }

    pub(super) fn description(&self) -> String {
        format!("the {}-byte {} at {:#x}", self.len, self.origin.noun(), self.start)
    }
}
