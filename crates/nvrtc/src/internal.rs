//! Items for the tests and the runner of this workspace. No promise of stability.

pub use crate::libraries::{LibraryName, NCCL, of_the_loader};
pub use crate::search::{Environment, Process, entries, folders};
