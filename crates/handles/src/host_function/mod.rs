//! Host functions that streams and graphs call: closures, their owners, and the hook for their
//! panics.
//!
//! cuda-graph's host nodes are made of [`Callable`] and [`call`]; other code has no need for these.

mod closure;
mod launch;
mod panic;
mod viewable;

pub use closure::{Callable, call};
pub use panic::{CallbackPanic, set_panic_hook};
pub use viewable::{HostViews, Viewable};
