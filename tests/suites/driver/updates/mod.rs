//! Updates of executables: single nodes, and whole graphs.

mod inside_host_functions;
