//! Which memory the kernels, copies and fills of a context may touch on another device.

use super::allocation::{Allocation, Origin};
use super::{find, pool};
use crate::device::context::{self, Context};
use crate::driver;
use crate::sync::lock;

/// The device on which an address lies; `None` for memory of the host, and where nothing is.
pub(crate) fn device_of(address: u64) -> Option<i32> {
    find(address).filter(|found| is_bound(found)).map(|found| found.device)
}

/// Whether memory lies on one device for good.
fn is_bound(found: &Allocation) -> bool {
    found.origin.is_on_device() && found.origin != Origin::Managed
}

/// Whether a copy or fill in a context may touch memory. Only pools of other devices are out of
/// reach, unless they grant access.
pub(crate) fn is_in_reach_of_copy(address: u64, context: u64) -> bool {
    if driver::config().devices == 1 {
        return true;
    }
    let Ok(device) = context::get(context).map(|known| known.device) else { return true };
    find(address).is_none_or(|found| {
        let is_far = found.origin == Origin::Pool && found.device != device;
        !is_far || grants(&found, device)
    })
}

/// Whether the graph of a captured fill on a device's stream can be instantiated: also plain memory
/// of other devices is out of reach.
pub(crate) fn is_in_reach_of_captured_fill(address: u64, device: i32) -> bool {
    find(address)
        .filter(|found| is_bound(found))
        .is_none_or(|found| found.device == device || found.origin == Origin::Pool && grants(&found, device))
}

/// Whether kernels of a context may touch memory. Whether an allocation node grants access is not
/// looked at.
pub(crate) fn is_in_reach_of_kernel(found: &Allocation, context: &Context) -> bool {
    if found.device == context.device || !is_bound(found) {
        return true;
    }
    match found.origin {
        Origin::Pool | Origin::Imported => grants(found, context.device),
        Origin::GraphNode => true,
        _ => {
            let owner = context::get(found.context).map(|owner| owner.id);
            owner.is_ok_and(|owner| lock(&context.peers).contains(&owner))
        }
    }
}

fn grants(found: &Allocation, device: i32) -> bool {
    pool::get(found.pool).is_ok_and(|pool| pool.access(device) == pool::READ_WRITE)
}
