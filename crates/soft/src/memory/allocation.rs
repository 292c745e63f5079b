//! One allocation: its bytes and its state.

use std::alloc::Layout;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::memory::hint::Hints;
use crate::memory::shared_file::{Mapping, SharedFile};

/// The content of memory that has not been written.
pub(crate) const UNWRITTEN: u8 = 0xCD;

static EPOCH: AtomicU64 = AtomicU64::new(1);

/// A counter that grows whenever memory is freed, or a texture or surface object destroyed.
pub(crate) fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// The counter behind [`epoch`].
pub(crate) fn epoch_counter() -> &'static AtomicU64 {
    &EPOCH
}

/// A texture or surface object has been destroyed.
pub(super) fn forget_views() {
    EPOCH.fetch_add(1, Ordering::AcqRel);
}

/// The origin of memory.
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
    /// A managed variable of a module.
    ManagedVariable,
    /// Memory of another process or of an imported pool.
    Imported,
    /// `cuArrayCreate`. Calls name it by its handle, never by its address.
    Array,
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
            Self::ManagedVariable => "managed module variable",
            Self::Imported => "imported allocation",
            Self::Array => "array",
        }
    }

    /// Whether the address is a host pointer.
    pub(crate) fn is_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Registered) || self.is_managed()
    }

    pub(crate) fn is_managed(self) -> bool {
        matches!(self, Self::Managed | Self::ManagedVariable)
    }

    /// Whether it belongs to a module, which alone frees it.
    pub(crate) fn is_variable(self) -> bool {
        matches!(self, Self::Variable | Self::ManagedVariable)
    }

    /// Whether it counts as device memory.
    pub(crate) fn is_on_device(self) -> bool {
        !matches!(self, Self::Pinned | Self::Registered)
    }

    /// Whether its bytes are counted for the device. Memory of graphs is counted by what they have
    /// mapped.
    pub(super) fn is_counted(self) -> bool {
        self.is_on_device() && !matches!(self, Self::Imported | Self::GraphNode)
    }
}

pub(super) const PENDING: u8 = 0;
pub(super) const LIVE: u8 = 1;
const GONE: u8 = 2;
/// Freed memory of a graph, at an address where a later node or a later launch allocates again.
pub(super) const RETIRED: u8 = 3;

/// The storage behind an allocation.
#[derive(Debug)]
pub(super) enum Backing {
    Heap(Layout),
    /// Memory of the user.
    User,
    /// A piece of a shared file. The process that allocated it releases it.
    InFile {
        file: Arc<SharedFile>,
        offset: u64,
        _mapping: Mapping,
        is_own: bool,
    },
}

/// The parameters of an allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) origin: Origin,
    pub(crate) len: usize,
    pub(crate) device: i32,
    pub(crate) context: u64,
    pub(crate) pool: u64,
    pub(crate) flags: u32,
}

/// One allocation. Its bytes live until the last reference is dropped, even if it was freed before.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) start: u64,
    pub(crate) len: usize,
    pub(crate) origin: Origin,
    pub(crate) device: i32,
    /// The context that it belongs to and ends with; 0 for pool memory.
    pub(crate) context: u64,
    /// The pool, for pool memory.
    pub(crate) pool: u64,
    /// Flags of the call that made it.
    pub(crate) flags: u32,
    /// Never reused.
    pub(crate) id: u64,
    host: *mut u8,
    backing: Backing,
    writable: AtomicBool,
    state: AtomicU8,
    /// A free is queued in some stream.
    free_queued: AtomicBool,
    /// For messages about memory of a graph: the node that allocates it, and the node that freed it
    /// last (0 for none).
    allocated_by: AtomicU64,
    freed_by: AtomicU64,
    /// Hints about managed memory.
    pub(crate) hints: Mutex<Hints>,
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
            hints: Mutex::default(),
        })
    }

    pub(super) fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }

    /// Makes it read-only for the device.
    pub(super) fn protect(&self) {
        self.writable.store(false, Ordering::Relaxed);
    }

    /// Marks it as freed; false if it already was.
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

    /// The shared file and the offset in it, if this process allocated it there.
    pub(crate) fn shared_at(&self) -> Option<(&SharedFile, u64)> {
        match &self.backing {
            Backing::InFile { file, offset, is_own: true, .. } => Some((file, *offset)),
            _ => None,
        }
    }

    /// The stream has reached the allocation point of pool memory.
    pub(crate) fn reach(&self) {
        let _ = self.state.compare_exchange(PENDING, LIVE, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Notes that a free is queued; false if one already is.
    pub(crate) fn queue_free(&self) -> bool {
        !self.free_queued.swap(true, Ordering::AcqRel)
    }

    /// Sets the allocation node that will make the memory live.
    pub(crate) fn await_node(&self, node: u64) {
        self.allocated_by.store(node, Ordering::Relaxed);
    }

    /// An allocation node is reached: the memory becomes live, and its old content is lost.
    pub(crate) fn renew(&self, node: u64) {
        self.await_node(node);
        if self.state.load(Ordering::Acquire) != PENDING {
            self.forget_bytes();
        }
        self.state.store(LIVE, Ordering::Release);
    }

    /// Memory of a graph ends until an allocation node is reached again. `free` is the free node,
    /// or 0.
    pub(crate) fn retire(&self, free: u64) {
        self.freed_by.store(free, Ordering::Relaxed);
        self.state.store(RETIRED, Ordering::Release);
        EPOCH.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether it is memory of a graph whose allocation node has not been reached (again) yet.
    pub(super) fn is_awaited(&self) -> bool {
        self.origin == Origin::GraphNode && matches!(self.state.load(Ordering::Acquire), PENDING | RETIRED)
    }

    /// Fills it with zeros.
    pub(crate) fn clear(&self) {
        self.overwrite(0);
    }

    fn forget_bytes(&self) {
        self.overwrite(UNWRITTEN);
    }

    /// Overwrites all bytes. Work that uses them may run at the same time.
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

    /// The queued free belongs to an earlier lifetime of the memory.
    pub(crate) fn unqueue_free(&self) {
        self.free_queued.store(false, Ordering::Release);
    }

    /// Whether calls can name it. Memory of a graph is gone for calls as soon as a call frees it.
    pub(crate) fn is_visible(&self) -> bool {
        self.origin != Origin::GraphNode || !self.free_queued.load(Ordering::Acquire)
    }

    /// Describes why memory may not be used in this state.
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

    pub(crate) fn description(&self) -> String {
        format!("the {}-byte {} at {:#x}", self.len, self.origin.noun(), self.start)
    }
}
