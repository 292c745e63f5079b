//! Executables: how they are made, and what a launch does.

mod instantiation;
mod launches;
