//! Devices, their contexts, and their loss.

pub(crate) mod context;
pub(crate) mod limits;
pub(crate) mod loss;
pub(crate) mod properties;
