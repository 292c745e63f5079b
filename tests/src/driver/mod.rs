//! The driver under test: installing it, what it has, its raw calls.

mod declared;
pub(crate) mod install;
mod need;
pub mod raw;

pub use install::{Setup, chosen, forced_shape, install, is_soft, setup};
pub use need::Need;
