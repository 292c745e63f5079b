//! Streams, and what their work uses: events, host functions, memory operations, semaphores.

pub(crate) mod attribute;
pub(crate) mod callback;
pub(crate) mod context_event;
pub(crate) mod default_stream;
pub(crate) mod event;
pub(crate) mod marker;
pub(crate) mod mem_op;
pub(crate) mod poll;
mod queue;
pub(crate) mod semaphore;
pub(crate) mod shared_records;

pub(crate) use queue::{
    Stream, StreamKind, Ticket, count, create, destroy, forget_context, get, synchronize_context, while_idle,
};
