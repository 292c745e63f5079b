//! Items for the crates above, cuda-graph in particular. No promise of stability.

pub use crate::arguments::access::{AccessRanges, Accesses, Declaration, Memory, MemoryParameter};
pub use crate::arguments::stored::{StoredArguments, StoredMemory};
pub use crate::config::attribute::AttributeList;
pub use crate::kernel::signature::{Overlap, Placeholders};
pub use crate::kernel::typed::read_back;
pub use crate::launch::launch_captured;
pub use crate::observe::{LaunchObserver, Observed, ObservedLaunch, set_launch_observer};
