//! Ready-made loops and branches, on the device and by the host.

pub(crate) mod by_host;
mod ready_made;
