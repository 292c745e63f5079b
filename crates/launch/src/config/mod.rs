//! Launch configurations: grid, block, shared memory, attributes, and their driver form.
//!
//! Configurations are plain values. The room `limits` checks them against driver, device and
//! kernel.

pub(crate) mod attribute;
pub(crate) mod dim;
pub(crate) mod driver_config;
pub(crate) mod launch_config;
pub(crate) mod stream_config;
