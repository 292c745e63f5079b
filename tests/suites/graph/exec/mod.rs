//! Executables: how they are made, and what a launch does.

mod captured_memory;
mod instantiation;
mod launches;
