//! Device addresses. They are made up and never mapped, and each is given out once unless the
//! configuration asks for reuse.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::driver;
use crate::driver::result_code::{Answer, OUT_OF_MEMORY};
use crate::ptx::FIRST_WINDOW;
use crate::sync::lock;

/// The first device address. With four-level page tables, no canonical address has bit 48 alone
/// set.
const FIRST_ADDRESS: u64 = 1 << 48;
/// All device addresses lie below this.
const END_OF_ADDRESSES: u64 = FIRST_ADDRESS << 1;
const _: () = assert!(END_OF_ADDRESSES <= FIRST_WINDOW, "kernels tell spaces apart by the address");
/// Allocations start at multiples of this, with at least as large a gap between them, so that an
/// access past the end hits no other allocation.
pub(super) const GRAIN: u64 = 512;
/// The alignment of every allocation.
pub(crate) const ALIGNMENT: u64 = GRAIN;

#[derive(Debug)]
struct Addresses {
    /// The first address that was never given out.
    next: u64,
    /// Freed ranges by size, if the configuration asks for reuse.
    free: Option<HashMap<u64, Vec<u64>>>,
}

static ADDRESSES: Mutex<Option<Addresses>> = Mutex::new(None);

fn with_addresses<R>(act: impl FnOnce(&mut Addresses) -> R) -> R {
    let reuses = || driver::config().reuse_addresses.then(HashMap::new);
    act(lock(&ADDRESSES).get_or_insert_with(|| Addresses { next: FIRST_ADDRESS, free: reuses() }))
}

/// The distance from an allocation of `len` bytes to the next one.
fn span(len: usize) -> Option<u64> {
    (len as u64).checked_next_multiple_of(GRAIN)?.checked_add(GRAIN)
}

/// A new address for `len` bytes.
pub(super) fn new_address(len: usize) -> Answer<u64> {
    let span = span(len).ok_or(OUT_OF_MEMORY)?;
    with_addresses(|addresses| {
        if let Some(start) = addresses.free.as_mut().and_then(|free| free.get_mut(&span)?.pop()) {
            return Ok(start);
        }
        let start = addresses.next;
        let end = start.checked_add(span).filter(|end| *end <= END_OF_ADDRESSES);
        addresses.next = end.ok_or(OUT_OF_MEMORY)?;
        Ok(start)
    })
}

/// A new range of addresses that starts at a multiple of `align`.
pub(super) fn new_range(len: u64, align: u64) -> Option<u64> {
    with_addresses(|addresses| {
        let start = addresses.next.next_multiple_of(align);
        let end = start.checked_add(len).filter(|end| *end <= END_OF_ADDRESSES)?;
        addresses.next = end;
        Some(start)
    })
}

/// Makes the addresses of freed memory available again, if the configuration asks for reuse.
pub(super) fn recycle(start: u64, len: usize) {
    with_addresses(|addresses| {
        if let (Some(free), Some(span)) = (addresses.free.as_mut(), span(len)) {
            free.entry(span).or_default().push(start);
        }
    });
}

/// Whether this is a device address, allocated or not.
pub(crate) fn is_device_address(address: u64) -> bool {
    (FIRST_ADDRESS..END_OF_ADDRESSES).contains(&address)
}
