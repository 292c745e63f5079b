//! Driver calls and allocations of each operation, exactly.

mod driver_calls;
mod large_graphs;
