//! Where each state space lies in the generic address space.

/// The first generic address above all memory of drivers and processes: device addresses stay below
/// it, and no processor gives processes addresses of so many bits. All windows lie above.
pub(crate) const FIRST_WINDOW: u64 = 1 << 60;
/// Shared memory. The windows are far apart, so that no offset leads from one into another. As on
/// GPUs, the low half of a generic address is the address in shared memory.
pub(super) const SHARED_WINDOW: u64 = FIRST_WINDOW;
/// Local memory. As on GPUs, the low half of an address alone is not a local address.
pub(super) const LOCAL_WINDOW: u64 = (2 << 60) + 0x6100_0000;
/// Kernel parameters.
pub(super) const PARAM_WINDOW: u64 = (3 << 60) + 0x6100_0000;
/// Addresses of functions, [`FUNCTION_STEP`] apart.
pub(super) const FUNCTION_WINDOW: u64 = (4 << 60) + 0x6100_0000;
pub(super) const FUNCTION_STEP: u64 = 16;
/// The heap of the device's `malloc`.
pub(super) const HEAP_WINDOW: u64 = (5 << 60) + 0x6100_0000;
/// The workspace of a grid, which its barriers use.
pub(super) const WORKSPACE_WINDOW: u64 = (6 << 60) + 0x6100_0000;
/// Size of the windows of shared, local and parameter memory, as on GPUs.
pub(super) const WINDOW: u64 = 1 << 24;

/// Converts a generic address to an address in shared memory. Addresses of other spaces are not
/// changed, so that their use is a fault. The null pointer is 0, as on GPUs.
pub(super) fn shared_from_generic(address: u64) -> u64 {
    let offset = address.wrapping_sub(SHARED_WINDOW);
    if offset < WINDOW { offset } else { address }
}
