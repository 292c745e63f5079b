//! The record of driver calls, of heap allocations and of living objects.

mod count;
pub(crate) mod heap;
pub(crate) mod live;
mod resident;
pub(crate) mod watch;

pub use count::{Counts, asked_by_copies, count};
pub use live::{Kind, Live, live};
pub use resident::resident;
pub use watch::{Step, calls_from_destructors, trace};
