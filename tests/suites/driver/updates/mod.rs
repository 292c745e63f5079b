//! Updates of executables: single nodes, and whole graphs.

mod captured_copies;
mod copy_memory;
mod inside_host_functions;
