//! The check of accesses against live allocations, and the message for a stray access.

use std::fmt::Write as _;
use std::sync::Arc;

use super::address_map::{find, find_range, neighbours};
use super::allocation::{Allocation, LIVE, PENDING, RETIRED};
use super::{freed, graph_va};

/// The live allocation behind an access.
///
/// # Errors
/// Returns a sentence that says what is wrong.
pub(crate) fn access(address: u64, len: usize, write: bool) -> Result<Arc<Allocation>, String> {
    let Some(found) = find_range(address, len) else { return Err(describe(address, len)) };
    match found.state() {
        LIVE if write && !found.is_writable() => Err(format!("{} may not be written", found.description())),
        LIVE => Ok(found),
        state @ (PENDING | RETIRED) => Err(found.misuse(state)),
        _ => Err(format!("{} has been freed", found.description())),
    }
}

/// Bytes of an allocation, kept alive for an access.
pub(crate) struct Accessed {
    pub(crate) host: *mut u8,
    _allocation: Arc<Allocation>,
}

/// As [`access`], but returns the bytes.
pub(crate) fn access_bytes(address: u64, len: usize, write: bool) -> Result<Accessed, String> {
    let allocation = access(address, len, write)?;
    // SAFETY: `access` found the range inside the allocation.
    let host = unsafe { allocation.host().add((address - allocation.start) as usize) };
    Ok(Accessed { host, _allocation: allocation })
}

/// Describes what is at or near an address that no live allocation holds.
fn describe(address: u64, len: usize) -> String {
    if let Some(found) = find(address) {
        let over = address.saturating_add(len as u64).saturating_sub(found.end());
        return format!("it goes {over} bytes past the end of {}", found.description());
    }
    match (freed::describe(address), graph_va::describe(address)) {
        (Some(freed), None) => return freed,
        (None, Some(reserved)) => return reserved,
        // The rest of the launch decides which of the two it is.
        (Some(freed), Some(reserved)) => return format!("{freed}; or {reserved}"),
        (None, None) => {}
    }
    let [below, above] = neighbours(address);
    let mut description = "no allocation holds it".to_owned();
    match (below, &above) {
        (Some((gap, found)), other) if other.as_ref().is_none_or(|(next, _)| gap <= *next) => {
            let _ = write!(
                description,
                "; the nearest is {}, which ends {gap} bytes before",
                found.description()
            );
        }
        (_, Some((gap, found))) => {
            let _ = write!(
                description,
                "; the nearest is {}, which starts {gap} bytes after",
                found.description()
            );
        }
        _ => description.push_str("; nothing is allocated"),
    }
    description
}

#[cfg(test)]
mod tests {
    use super::super::allocation::{Origin, Request};
    use super::super::{address_map, allocate};
    use super::*;

    #[test]
    fn the_bytes_of_freed_memory_stay_until_the_access_is_over() {
        let request =
            Request { origin: Origin::Managed, len: 4096, device: 0, context: 0, pool: 0, flags: 0 };
        let made = allocate::allocate(request).unwrap();
        let (start, weak) = (made.start, Arc::downgrade(&made));
        made.clear();
        let accessed = access_bytes(start, 4096, true).ok().unwrap();
        address_map::remove(&made, "the test");
        drop(made);
        assert!(access(start, 1, false).is_err());
        // SAFETY: the access holds the allocation.
        assert_eq!(unsafe { accessed.host.read() }, 0);
        drop(accessed);
        assert_eq!(weak.strong_count(), 0);
    }
}
