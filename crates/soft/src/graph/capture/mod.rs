//! Stream capture: work enqueued on a capturing stream becomes nodes of a graph.
//!
//! # States of a capture
//!
//! | State | Entered by | Calls on its streams |
//! | --- | --- | --- |
//! | active | `cuStreamBeginCapture…`; waiting for a captured event joins | add nodes |
//! | invalidated | a call that the capture forbids | fail; the capture still has to be ended |
//! | ended | `cuStreamEndCapture`, or the destruction of the origin stream | run as usual |
//!
//! - [`open_captures`] knows which captures are open, their modes, and whether they are valid.
//!   Calls that have nothing to do with streams ask it whether a capture forbids them.
//! - `state` knows what each capturing stream's next node depends on, and which nodes a captured
//!   event stands for.
//!
//! The lock of `state` is taken before that of the graphs, and both before that of `open_captures`.

mod begin_end;
mod enqueue;
mod events;
mod info;
pub(crate) mod open_captures;
mod state;

pub(crate) use begin_end::{begin, end, forget_stream};
pub(crate) use enqueue::{add, add_where_captured, invalidate_on, is_captured, refuse_invalid, refuse_on};
pub(crate) use events::{Wait, check_event, forget_event, record, record_node, wait};
pub(crate) use info::{Info, check_legacy_question, holds, info, is_capturing, update};
