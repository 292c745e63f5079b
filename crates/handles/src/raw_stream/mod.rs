//! The driver's stream behind the handles, which may outlive them.

mod all_streams;
mod event;
mod exclusion;
mod legacy;
mod owner;
pub(crate) mod point;
mod wanted;

pub(crate) use all_streams::{ensure_idle, note};
pub(crate) use event::create_event;
pub(crate) use legacy::share as share_legacy;
pub(crate) use owner::{RawStream, let_wait};
