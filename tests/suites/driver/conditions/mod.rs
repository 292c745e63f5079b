//! Conditional nodes and their conditions.

mod bodies;
mod handles;
mod runs;
mod updates;
