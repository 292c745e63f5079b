//! Which side decides about loops and branches: the device where the driver has nodes for them,
//! unless tests say otherwise.

use core::sync::atomic::{AtomicBool, Ordering};

static HOST: AtomicBool = AtomicBool::new(false);

/// Treats the driver as the oldest one, which lacks conditional nodes, for the whole process. So
/// the tests run ready-made loops and branches by the host on drivers that have the nodes.
pub fn let_the_host_decide() {
    HOST.store(true, Ordering::Relaxed);
}

/// Whether conditional nodes are left alone.
pub(super) fn host_decides() -> bool {
    HOST.load(Ordering::Relaxed)
}
