//! The driver's stream behind the handles, which may outlive them.

mod all_streams;
mod capture_log;
mod capture_state;
mod event;
mod exclusion;
mod gate;
mod idle;
mod legacy;
mod order;
mod owner;
pub(crate) mod point;
mod writers;

pub(crate) use all_streams::{all_of, ensure_idle, note};
pub(crate) use capture_log::CaptureLog;
pub(crate) use event::create_event;
pub(crate) use legacy::read as share_legacy;
pub(crate) use order::let_wait;
pub(crate) use owner::RawStream;
