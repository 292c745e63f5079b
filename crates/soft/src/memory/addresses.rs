//! Device addresses: made up, never mapped in the process, and given out once unless the
//! configuration asks for reuse.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::driver;
use crate::driver::result_code::{Answer, OUT_OF_MEMORY};
use crate::ptx::FIRST_WINDOW;
use crate::sync::lock;

/// The first device address. Bit 48 alone makes no canonical address with four-level page tables.
const FIRST_ADDRESS: u64 = 1 << 48;
/// All device addresses lie below this.
const END_OF_ADDRESSES: u64 = FIRST_ADDRESS << 1;
const _: () = assert!(END_OF_ADDRESSES <= FIRST_WINDOW, "kernels tell spaces apart by the address");
/// Allocations start at multiples of this and lie at least as far apart, so that a step past the
/// end hits nothing.
pub(super) const GRAIN: u64 = 512;
/// What every allocation is aligned to.
pub(crate) const ALIGNMENT: u64 = GRAIN;

#[derive(Debug)]
struct Addresses {
    /// The first address that was never given out.
    next: u64,
    /// Freed ranges by size, for reuse where the configuration asks for it.
    free: Option<HashMap<u64, Vec<u64>>>,
}

static ADDRESSES: Mutex<Option<Addresses>> = Mutex::new(None);

fn with_addresses<R>(act: impl FnOnce(&mut Addresses) -> R) -> R {
    let reuses = || driver::config().reuse_addresses.then(HashMap::new);
    act(lock(&ADDRESSES).get_or_insert_with(|| Addresses { next: FIRST_ADDRESS, free: reuses() }))
}

/// How far the next allocation is from one of `len` bytes.
fn span(len: usize) -> Option<u64> {
    (len as u64).checked_next_multiple_of(GRAIN)?.checked_add(GRAIN)
}

/// An address for so many bytes, unless there are no addresses left.
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

/// A range of addresses that starts at a multiple of `align`, unless there are not as many left.
pub(super) fn new_range(len: u64, align: u64) -> Option<u64> {
    with_addresses(|addresses| {
        let start = addresses.next.next_multiple_of(align);
        let end = start.checked_add(len).filter(|end| *end <= END_OF_ADDRESSES)?;
        addresses.next = end;
        Some(start)
    })
}

/// Gives the addresses of freed memory to later allocations, where the configuration asks for that.
pub(super) fn recycle(start: u64, len: usize) {
    with_addresses(|addresses| {
        if let (Some(free), Some(span)) = (addresses.free.as_mut(), span(len)) {
            free.entry(span).or_default().push(start);
        }
    });
}

/// Whether the address is of the kind made up for devices, mapped or not.
pub(crate) fn is_device_address(address: u64) -> bool {
    (FIRST_ADDRESS..END_OF_ADDRESSES).contains(&address)
}
