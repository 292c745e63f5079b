//! Destroying driver objects: at once, or by handing them to the reaper.

mod attempts;
pub mod clones;
mod failure;
mod kept;
mod list;
mod queue;

pub(crate) use attempts::{any as any_attempts, attempt, try_all as try_attempts};
pub use failure::{DropCause, DropFailure, set_hook};
pub(crate) use failure::{dropping, report};
pub use kept::Kept;
pub(crate) use list::{List, Node};
pub(crate) use queue::{
    Doomed, LIBRARIES, OBJECTS, Object, PAYLOADS, Payload, STALLING, Unused, destroy, destroy_with,
    drop_later, end_all, end_each, expect_one, last_unended, may_call, one_done, push_library, push_payload,
    push_stalling, set_starter, start, try_destroy, wake,
};
pub use queue::{manual, pending};
