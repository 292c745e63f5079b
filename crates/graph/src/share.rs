//! What an executable has of the owners of its graph.

use cuda_handles::UserObject;

use crate::last_runs::LastRuns;

/// The share of the owners that an executable has. Beside the driver's own references it is held here, so that after the context was lost,
/// where nothing is destroyed any more, the drop still lets the owners go.
pub(crate) struct Share {
    owners: Option<UserObject>,
    /// Where the executable ran last, if the driver's own references stay after the last run is over, as its end is put off.
    put_off: Option<LastRuns>,
}

impl Share {
    pub(crate) fn new(owners: UserObject, put_off: Option<LastRuns>) -> Self {
        Self { owners: Some(owners), put_off }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let (Some(owners), Some(runs)) = (self.owners.take(), &self.put_off) {
            // SAFETY: an executable whose runs are known does not overlap itself, and runs no more: all ended where the last one did.
            unsafe { owners.give_up_after(&runs.streams()) };
        }
    }
}
