//! Devices: properties and limits, contexts, and the loss of a device.

pub(crate) mod context;
pub(crate) mod context_limits;
pub(crate) mod limits;
pub(crate) mod loss;
pub(crate) mod properties;
