//! The interface between the interpreter and the driver's memory.

mod heap;

use std::sync::atomic::AtomicU64;

use super::error::FaultKind;
use super::texture::{Texels, Texture};
pub(crate) use heap::Heap;

/// A live allocation, as the interpreter accesses it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// First device address.
    pub(crate) device_start: u64,
    /// Size in bytes.
    pub(crate) len: u64,
    /// Host pointer to the first byte. Congruent to `device_start` modulo 16, or accesses become
    /// slow.
    pub(crate) host: *mut u8,
    /// Whether kernels may write here.
    pub(crate) writable: bool,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Read,
    Write,
    Atomic,
}

/// What a launch is checked for beyond the validity of its accesses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Checks {
    /// Reads of shared memory that no thread of the block has written.
    pub(crate) unwritten_shared: bool,
    /// Races in shared memory.
    pub(crate) shared_races: bool,
    /// Races in global memory.
    pub(crate) global_races: bool,
}

impl Checks {
    /// Whether anything is checked.
    pub(crate) fn any(self) -> bool {
        self != Checks::default()
    }
}

/// Why an access was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryFault {
    /// The kind of fault that the grid ends with.
    pub(crate) kind: FaultKind,
    /// Details: the nearest allocation, how it was freed, and so on.
    pub(crate) message: String,
}

impl MemoryFault {
    /// There is no texture or surface object of that handle.
    pub(crate) fn no_object(kind: &str, handle: u64) -> Self {
        let message = format!("{handle:#x} is not the handle of a {kind} object");
        MemoryFault { kind: FaultKind::IllegalAddress, message }
    }
}

/// Global memory and conditional handles of the driver.
///
/// The interpreter reads and writes through [`Span::host`] with relaxed atomic accesses, from
/// several threads at once. So every span that `translate` returns must point to `len` bytes that
/// stay mapped until the `run` that asked has returned, even when the allocation is freed
/// meanwhile, and that nobody accesses in any other way than atomically while kernels may run on
/// them.
pub(crate) trait DeviceMemory: Sync {
    /// The allocation that holds all of `address .. address + len`.
    ///
    /// # Errors
    /// No live allocation holds all of it, or `write` is set and it is read-only.
    fn translate(&self, address: u64, len: usize, write: bool) -> Result<Span, MemoryFault>;

    /// Grows when any allocation is freed or unmapped, or a texture or surface object destroyed.
    /// Spans and objects are cached only while it stays the same.
    fn epoch(&self) -> u64;

    /// The counter behind [`epoch`](Self::epoch), for native code. Without one, kernels are only
    /// interpreted.
    fn epoch_counter(&self) -> Option<&AtomicU64> {
        None
    }

    /// Whether `note` has to be called for each access.
    fn is_watched(&self) -> bool {
        false
    }

    /// An access that `translate` allowed, if accesses are [watched](Self::is_watched).
    ///
    /// # Errors
    /// The launch may not make the access now.
    fn note(&self, _address: u64, _len: usize, _kind: AccessKind) -> Result<(), MemoryFault> {
        Ok(())
    }

    /// What to check the launch for.
    fn checks(&self) -> Checks {
        Checks::default()
    }

    /// Sets the value of a conditional node (`cudaGraphSetConditional`).
    ///
    /// # Errors
    /// This launch may not set the handle.
    fn set_conditional(&self, handle: u64, value: u32) -> Result<(), MemoryFault>;

    /// The texture object of that handle.
    ///
    /// # Errors
    /// There is none.
    fn texture(&self, handle: u64) -> Result<Texture, MemoryFault> {
        Err(MemoryFault::no_object("texture", handle))
    }

    /// The texels of the surface object of that handle.
    ///
    /// # Errors
    /// There is none.
    fn surface(&self, handle: u64) -> Result<Texels, MemoryFault> {
        Err(MemoryFault::no_object("surface", handle))
    }

    /// The heap of the device's `malloc`, which a context has. Without one, the kernels of an image
    /// share a heap.
    fn heap(&self) -> Option<&Heap> {
        None
    }

    /// Whether to stop the grid with [`FaultKind::Cancelled`]. Polled while a grid runs.
    fn cancelled(&self) -> bool {
        false
    }
}
