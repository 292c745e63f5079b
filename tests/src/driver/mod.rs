//! The driver under test: installing it, what it has, its raw calls.

pub(crate) mod conditionals;
mod declared;
pub(crate) mod device;
pub(crate) mod install;
mod need;
mod null_stream;
pub mod raw;

pub use conditionals::host_decides;
pub use device::{device, other_device};
pub use install::{Setup, chosen, forced_shape, install, is_soft, setup};
pub use need::Need;
pub use null_stream::null_stream_is_per_thread;
