//! What the interpreter asks of the memory behind it.

use super::error::FaultKind;

/// A live allocation as the interpreter reaches it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// First device address.
    pub(crate) device_start: u64,
    /// Bytes from there on.
    pub(crate) len: u64,
    /// Host pointer to the first byte. Congruent to `device_start` modulo 16, or accesses become
    /// slow.
    pub(crate) host: *mut u8,
    /// Whether kernels may write here.
    pub(crate) writable: bool,
}

/// Why an access was refused, in the words of the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryFault {
    /// The fault that the grid ends with.
    pub(crate) kind: FaultKind,
    /// The particulars: the nearest allocation, when it was freed, and so on.
    pub(crate) message: String,
}

/// Global memory and conditions, as kept by the driver.
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
    /// Nothing live holds all of it, or it may not be written and `write` is set.
    fn translate(&self, address: u64, len: usize, write: bool) -> Result<Span, MemoryFault>;

    /// Grows when any allocation is freed or unmapped; spans are cached only while it stays the
    /// same.
    fn epoch(&self) -> u64;

    /// Sets the value of a conditional node (`cudaGraphSetConditional`).
    ///
    /// # Errors
    /// The handle is none that this launch may set.
    fn set_conditional(&self, handle: u64, value: u32) -> Result<(), MemoryFault>;

    /// Asked now and then while a grid runs: whether to stop it with [`FaultKind::Cancelled`].
    fn cancelled(&self) -> bool {
        false
    }
}
