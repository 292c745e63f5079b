//! The kind of memory behind an address, and which memory a copy or fill may name.

use super::address_map::{find, find_range};
use super::addresses::is_device_address;
use super::allocation::Origin;
use super::graph_va::is_reserved;
use crate::ptx::FIRST_WINDOW;

/// The kind of memory behind an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryKind {
    /// Memory of a device, or managed.
    Device,
    /// Host memory that the driver knows.
    Pinned,
    /// Any other host memory.
    Pageable,
}

impl MemoryKind {
    /// The kind of memory at an address; `None` for a device address without memory.
    pub(crate) fn of(address: u64) -> Option<Self> {
        match find(address) {
            Some(found) if found.origin.is_on_device() => Some(Self::Device),
            Some(_) => Some(Self::Pinned),
            None if is_reserved(address, 1) => Some(Self::Device),
            // The windows of kernels are no host memory either.
            None if is_device_address(address) || address >= FIRST_WINDOW => None,
            None => Some(Self::Pageable),
        }
    }

    pub(crate) fn is_host(self) -> bool {
        self != Self::Device
    }
}

/// Whether the memory at an address belongs to a context: memory of pools and graphs does not.
pub(crate) fn has_context(address: u64) -> bool {
    find(address).is_some_and(|found| found.pool == 0 && found.origin != Origin::GraphNode)
}

/// Which memory a copy or fill may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accept {
    /// Memory that a graph will allocate, too: for nodes.
    Reserved,
    /// Only allocated memory: for calls.
    Allocated,
}

impl Accept {
    pub(super) fn is_there(self, address: u64, len: usize) -> bool {
        find_range(address, len).is_some_and(|found| found.is_visible())
            || (self == Self::Reserved && is_reserved(address, len))
    }
}
