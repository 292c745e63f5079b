//! Looking into the driver and steering it, for tests.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use cuda_sys::CUresult;

use crate::abi;
use crate::device::loss::{self, Loss};
use crate::driver;
use crate::graph::model::{store, user_object};
use crate::memory::pool;
use crate::memory::{self, Origin};
use crate::module;
use crate::stream;
use crate::stream::event;
use crate::stream::semaphore;
use crate::stream::semaphore::SharedCounter;

/// How many objects of each kind live: made by the user and not yet destroyed. `bytes` kinds count
/// bytes.
///
/// The kinds: `streams`, `events`, `device allocations`, `device bytes`, `pinned allocations`,
/// `pinned bytes`, `registered ranges`, `pools`, `libraries`, `modules`, `links`, `graphs`,
/// `executables`, `user objects`, `external semaphores`. What belongs to another object (children,
/// bodies, the variables of a module, the modules of a library) is not counted, nor are default
/// streams and pools.
///
/// Memory counts until its free has taken place, which for a stream-ordered one is when the stream
/// gets there.
#[must_use]
pub fn live_objects() -> Vec<(&'static str, usize)> {
    let sum = |wanted: &dyn Fn(Origin) -> bool| {
        let found = memory::all(|allocation| wanted(allocation.origin));
        (found.len(), found.iter().map(|allocation| allocation.len).sum())
    };
    let (device, device_bytes) = sum(&|origin| origin.is_on_device() && origin != Origin::Variable);
    let (pinned, pinned_bytes) = sum(&|origin| origin == Origin::Pinned);
    let (registered, _): (usize, usize) = sum(&|origin| origin == Origin::Registered);
    let (libraries, modules) = module::counts();
    let (graphs, execs) = store::counts();
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
    ]
}

/// Loses all devices, as a kernel's stray access does one: from now on calls answer `code`. The
/// first loss of a device stays.
pub fn lose_context(code: CUresult) {
    for device in 0..driver::config().devices {
        lose_device(i32::try_from(device).unwrap_or(i32::MAX), code);
    }
}

/// Loses one device: calls on its contexts, streams and events answer `code` from now on, those of
/// other devices do not. The first loss of a device stays.
pub fn lose_device(device: i32, code: CUresult) {
    if !code.is_success() {
        loss::set(device, Loss::new(code, format!("the context was lost on demand with {code}")));
    }
}

/// Why the first device was lost: kernel, thread, address and the nearest allocation, or the copy
/// or fill; `None` while none is.
#[must_use]
pub fn last_fault() -> Option<String> {
    loss::sentence(None)
}

/// As [`last_fault`], of one device.
#[must_use]
pub fn last_fault_of(device: i32) -> Option<String> {
    loss::sentence(Some(device))
}

/// The other side of an external semaphore: what a graphics library would have made and signals.
///
/// The driver imports its descriptor as an opaque one, of a semaphore that is signalled (1) or not
/// (0), or as that of a timeline.
#[derive(Debug)]
pub struct ExternalSemaphore {
    word: SharedCounter,
}

impl ExternalSemaphore {
    /// A semaphore that is not signalled, or a timeline at 0.
    ///
    /// # Errors
    /// The system has no room for it.
    pub fn new() -> io::Result<Self> {
        Ok(Self { word: SharedCounter::create()? })
    }

    /// A descriptor for `cuImportExternalSemaphore`, which takes it over; each import needs its
    /// own.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.word.export()
    }

    /// What it is at.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.word.get().load(Ordering::SeqCst)
    }

    /// Sets what it is at: a signal from this side, or the take of one.
    pub fn set_value(&self, value: u64) {
        self.word.get().store(value, Ordering::SeqCst);
    }
}
