//! Items for the tests and the runner of this workspace. No promise of stability.

pub use crate::search::{Environment, Process, folders};
