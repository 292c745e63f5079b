//! Destroying driver objects: immediately, or by handing them to the reaper.

mod attempts;
pub mod clones;
mod failure;
mod kept;
mod list;
mod object;
mod payload;
mod pending;
mod queue;

pub(crate) use attempts::{any as any_attempts, attempt, try_all as try_attempts};
pub use failure::{DropCause, DropFailure, set_hook};
pub(crate) use failure::{dropping, report};
pub use kept::Kept;
pub(crate) use list::{List, Node};
pub(crate) use object::Object;
pub(crate) use payload::Payload;
pub use pending::pending;
pub(crate) use pending::{expect_one, one_done};
pub use queue::manual;
pub(crate) use queue::{
    DEFERRED, Destruction, LIBRARIES, OBJECTS, PAYLOADS, UnusedLibrary, defer_destroy, destroy, destroy_with,
    drop_later, may_call, push_library, push_payload, retry_all, retry_each, set_starter, start, try_destroy,
    wake,
};
