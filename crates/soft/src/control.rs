//! Observing and controlling the driver in tests.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use cuda_sys::{CUfunction, CUresult};

use crate::abi;
use crate::device::loss::{self, Loss};
use crate::driver;
use crate::driver::handle::number;
use crate::graph::model::{store, user_object};
use crate::launch::declared;
use crate::memory::{self, Origin, array, pool, texture};
use crate::module;
use crate::stream;
use crate::stream::event;
use crate::stream::semaphore;
use crate::stream::semaphore::SharedCounter;

/// The number of live objects of each kind: created by the user and not destroyed. Kinds named
/// `bytes` count bytes.
///
/// The kinds: `streams`, `events`, `device allocations`, `device bytes`, `pinned allocations`,
/// `pinned bytes`, `registered ranges`, `pools`, `libraries`, `modules`, `links`, `graphs`,
/// `executables`, `user objects`, `external semaphores`, `arrays`, `texture objects`, `surface
/// objects`. Parts of other objects (child graphs, bodies, variables of a module, modules of a
/// library), default streams and default pools are not counted.
///
/// Memory counts until its free has been executed; a stream-ordered free is executed when the
/// stream reaches it.
#[must_use]
pub fn live_objects() -> Vec<(&'static str, usize)> {
    let sum = |wanted: &dyn Fn(Origin) -> bool| {
        let found = memory::all(|allocation| wanted(allocation.origin));
        (found.len(), found.iter().map(|allocation| allocation.len).sum())
    };
    let (device, device_bytes) =
        sum(&|origin| origin.is_on_device() && !(origin.is_variable() || origin == Origin::Array));
    let (pinned, pinned_bytes) = sum(&|origin| origin == Origin::Pinned);
    let (registered, _): (usize, usize) = sum(&|origin| origin == Origin::Registered);
    let (libraries, modules) = module::counts();
    let (graphs, execs) = store::counts();
    let (textures, surfaces) = texture::counts();
    vec![
        ("streams", stream::count()),
        ("events", event::count()),
        ("device allocations", device),
        ("device bytes", device_bytes),
        ("pinned allocations", pinned),
        ("pinned bytes", pinned_bytes),
        ("registered ranges", registered),
        ("pools", pool::count()),
        ("libraries", libraries),
        ("modules", modules),
        ("links", abi::link::count()),
        ("graphs", graphs),
        ("executables", execs),
        ("user objects", user_object::count()),
        ("external semaphores", semaphore::count()),
        ("arrays", array::count()),
        ("texture objects", textures),
        ("surface objects", surfaces),
    ]
}

/// Marks all devices as lost, as a stray access of a kernel does for one device: calls return
/// `code` from now on. The first loss of a device is kept.
pub fn lose_context(code: CUresult) {
    for device in 0..driver::config().devices {
        lose_device(i32::try_from(device).unwrap_or(i32::MAX), code);
    }
}

/// Marks one device as lost: calls on its contexts, streams and events return `code` from now on.
/// Other devices are not affected. The first loss of a device is kept.
pub fn lose_device(device: i32, code: CUresult) {
    if !code.is_success() {
        loss::set(device, Loss::new(code, format!("the context was lost on demand with {code}")));
    }
}

/// Why the first device was lost: kernel, thread, address and the nearest allocation, or the copy
/// or fill. `None` while no device is lost.
#[must_use]
pub fn last_fault() -> Option<String> {
    loss::sentence(None)
}

/// As [`last_fault`], for one device.
#[must_use]
pub fn last_fault_of(device: i32) -> Option<String> {
    loss::sentence(Some(device))
}

/// Device memory that a kernel declares to access, for [`expect_accesses`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredMemory {
    parameter: String,
    start: u64,
    bytes: u64,
    written: bool,
}

impl DeclaredMemory {
    /// The memory given for a parameter: `bytes` from the address `start` on. The kernel may read
    /// it, and write it if `written`.
    #[must_use]
    pub fn new(parameter: &str, start: u64, bytes: u64, written: bool) -> Self {
        Self { parameter: parameter.to_owned(), start, bytes, written }
    }
}

/// Declares all memory that launches of this function access, besides the variables of its image,
/// until the next call: those that this thread enqueues or captures, and those of kernel nodes that
/// it adds or changes, in a graph or in an executable. An access to other memory, or a write where
/// the kernel only reads, loses the context; [`last_fault`] names the parameter. `None` declares
/// nothing any more.
///
/// A node keeps its declaration in clones and executables, until its parameters change. Another
/// node that is made with the parameters read from it gets the declaration, too.
pub fn expect_accesses(launch: Option<(CUfunction, Vec<DeclaredMemory>)>) {
    let internal = |memory: DeclaredMemory| {
        let DeclaredMemory { parameter, start, bytes, written } = memory;
        declared::DeclaredMemory { parameter, start, bytes, written }
    };
    declared::expect(
        launch.map(|(function, memory)| (number(function), memory.into_iter().map(internal).collect())),
    );
}

/// The other side of an external semaphore, in the place of a graphics library.
///
/// The driver imports its descriptor as an opaque semaphore, which is signalled (1) or not (0), or
/// as a timeline.
#[derive(Debug)]
pub struct ExternalSemaphore {
    word: SharedCounter,
}

impl ExternalSemaphore {
    /// Creates a semaphore that is not signalled, or a timeline at 0.
    ///
    /// # Errors
    /// Returns the error of the system if it cannot create the file.
    pub fn new() -> io::Result<Self> {
        Ok(Self { word: SharedCounter::create()? })
    }

    /// A descriptor for `cuImportExternalSemaphore`, which takes ownership of it. Each import needs
    /// its own.
    ///
    /// # Errors
    /// Returns the error of the system if the process has no descriptor left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.word.export()
    }

    /// The current value.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.word.get().load(Ordering::SeqCst)
    }

    /// Sets the value: signals from this side, or consumes a signal.
    pub fn set_value(&self, value: u64) {
        self.word.get().store(value, Ordering::SeqCst);
    }
}
