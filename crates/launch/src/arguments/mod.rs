//! Kernel arguments: packing them, checking their sizes and contexts, and keeping their memory.
//!
//! [`holder`] has the trait that launches and kernel nodes take. Its implementations are
//! [`params`] (borrows), [`owned_params`] (owns) and the prepared arguments of a typed kernel.

pub(crate) mod access;
pub(crate) mod argument_order;
pub(crate) mod conditional_handle;
pub(crate) mod holder;
pub(crate) mod kernel_arg;
pub(crate) mod last_launch;
pub(crate) mod owned_params;
pub(crate) mod padding;
pub(crate) mod params;
pub(crate) mod size_check;
pub(crate) mod slot;
pub(crate) mod stored;
pub(crate) mod wrong_context;
