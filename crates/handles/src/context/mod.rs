//! Devices and contexts, and the rules for every call in one.

mod busy;
pub mod capture_mode;
mod device;
mod handle;
pub(crate) mod in_host_function;
mod limits;
mod peer;
mod peers;
pub(crate) mod primary;
mod profiler;
mod same;
mod scheduling;

pub(crate) use busy::lock_unranked_unless_inside;
pub(crate) use busy::{Busy, unless_inside};
pub use busy::{lock_second_unless_inside, lock_unless_inside, wait_unless_inside};
pub use device::Device;
pub(crate) use device::{checked, initialised};
pub use handle::Context;
pub(crate) use handle::{Current, is_sticky, on_loss};
pub use limits::Limits;
pub use scheduling::Scheduling;
