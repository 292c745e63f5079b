//! The living objects of the driver by kind, counted from the calls that create and destroy them.

use core::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

use cuda_sys::Call;

/// A kind of driver object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Kind {
    /// Contexts: primary ones retained, and created ones.
    Context,
    /// Streams.
    Stream,
    /// Events.
    Event,
    /// Device memory.
    Allocation,
    /// Pinned host memory, and registered memory.
    Pinned,
    /// Memory pools.
    Pool,
    /// Libraries.
    Library,
    /// Modules.
    Module,
    /// Graphs that somebody must destroy: created, cloned or captured.
    Graph,
    /// Executable graphs.
    Exec,
    /// User objects whose destructor has not run.
    UserObject,
    /// Semaphores of other interfaces.
    Semaphore,
    /// Arrays.
    Array,
    /// Texture objects.
    Texture,
    /// Surface objects.
    Surface,
}

const KINDS: [Kind; 15] = [
    Kind::Context,
    Kind::Stream,
    Kind::Event,
    Kind::Allocation,
    Kind::Pinned,
    Kind::Pool,
    Kind::Library,
    Kind::Module,
    Kind::Graph,
    Kind::Exec,
    Kind::UserObject,
    Kind::Semaphore,
    Kind::Array,
    Kind::Texture,
    Kind::Surface,
];

static LIVE: [AtomicI64; KINDS.len()] = [const { AtomicI64::new(0) }; KINDS.len()];

/// The number of objects of each kind, or the difference of two such numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Live([i64; KINDS.len()]);

/// The objects that live now.
#[must_use]
pub fn live() -> Live {
    Live(core::array::from_fn(|kind| LIVE[kind].load(Ordering::SeqCst)))
}

impl Live {
    /// The number for one kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> i64 {
        self.0[kind as usize]
    }

    /// The difference to `earlier`; negative if more were destroyed than made.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(core::array::from_fn(|kind| self.0[kind] - earlier.0[kind]))
    }

    /// Whether there is more of anything than `earlier`.
    #[must_use]
    pub fn is_more_than(&self, earlier: &Self) -> bool {
        self.0.iter().zip(&earlier.0).any(|(now, then)| now > then)
    }

    /// Whether every number is 0.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }
}

impl fmt::Display for Live {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nothing() {
            return formatter.write_str("nothing");
        }
        let mut separator = "";
        for kind in KINDS.into_iter().filter(|kind| self.of(*kind) != 0) {
            write!(formatter, "{separator}{kind:?}: {}", self.of(kind))?;
            separator = ", ";
        }
        Ok(())
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The change that a successful call makes. User objects end with their destructor, which a wrapped
/// call sees.
fn effect(call: Call) -> Option<(Kind, i64)> {
    Some(match call {
        Call::cuDevicePrimaryCtxRetain | Call::cuCtxCreate | Call::cuCtxCreate_v12050 => (Kind::Context, 1),
        Call::cuDevicePrimaryCtxRelease | Call::cuCtxDestroy => (Kind::Context, -1),
        Call::cuStreamCreate | Call::cuStreamCreateWithPriority => (Kind::Stream, 1),
        Call::cuStreamDestroy => (Kind::Stream, -1),
        Call::cuEventCreate | Call::cuIpcOpenEventHandle => (Kind::Event, 1),
        Call::cuEventDestroy => (Kind::Event, -1),
        Call::cuMemAlloc
        | Call::cuMemAllocPitch
        | Call::cuMemAllocManaged
        | Call::cuMemAllocAsync
        | Call::cuMemAllocFromPoolAsync
        | Call::cuMemPoolImportPointer => (Kind::Allocation, 1),
        Call::cuMemFree | Call::cuMemFreeAsync => (Kind::Allocation, -1),
        Call::cuMemAllocHost | Call::cuMemHostAlloc | Call::cuMemHostRegister => (Kind::Pinned, 1),
        Call::cuMemFreeHost | Call::cuMemHostUnregister => (Kind::Pinned, -1),
        Call::cuMemPoolCreate | Call::cuMemPoolImportFromShareableHandle => (Kind::Pool, 1),
        Call::cuMemPoolDestroy => (Kind::Pool, -1),
        Call::cuLibraryLoadData | Call::cuLibraryLoadFromFile => (Kind::Library, 1),
        Call::cuLibraryUnload => (Kind::Library, -1),
        Call::cuModuleLoad
        | Call::cuModuleLoadData
        | Call::cuModuleLoadDataEx
        | Call::cuModuleLoadFatBinary => (Kind::Module, 1),
        Call::cuModuleUnload => (Kind::Module, -1),
        Call::cuGraphCreate | Call::cuGraphClone | Call::cuStreamEndCapture => (Kind::Graph, 1),
        Call::cuGraphDestroy => (Kind::Graph, -1),
        Call::cuGraphInstantiateWithFlags | Call::cuGraphInstantiateWithParams => (Kind::Exec, 1),
        Call::cuGraphExecDestroy => (Kind::Exec, -1),
        Call::cuUserObjectCreate => (Kind::UserObject, 1),
        Call::cuImportExternalSemaphore => (Kind::Semaphore, 1),
        Call::cuDestroyExternalSemaphore => (Kind::Semaphore, -1),
        Call::cuArrayCreate | Call::cuArray3DCreate => (Kind::Array, 1),
        Call::cuArrayDestroy => (Kind::Array, -1),
        Call::cuTexObjectCreate => (Kind::Texture, 1),
        Call::cuTexObjectDestroy => (Kind::Texture, -1),
        Call::cuSurfObjectCreate => (Kind::Surface, 1),
        Call::cuSurfObjectDestroy => (Kind::Surface, -1),
        _ => return None,
    })
}

/// Counts a successful call.
pub(crate) fn note(call: Call) {
    if let Some((kind, change)) = effect(call) {
        change_by(kind, change);
    }
}

/// Changes the number of a kind.
pub(crate) fn change_by(kind: Kind, change: i64) {
    LIVE[kind as usize].fetch_add(change, Ordering::SeqCst);
}

/// Whether a successful call ends an object.
pub(crate) fn ends_something(call: Call) -> bool {
    effect(call).is_some_and(|(_, change)| change < 0)
        || matches!(call, Call::cuUserObjectRelease | Call::cuGraphReleaseUserObject)
}
