//! Driver calls that are held up, or that fail in the driver's place.

pub(crate) mod hold;
pub(crate) mod inject;
pub(crate) mod swept;

pub use hold::{Hold, hold};
pub use inject::{Injection, fail, fail_any};
