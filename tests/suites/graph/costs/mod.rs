//! Driver calls and allocations of each operation, exactly.

mod captures;
mod driver_calls;
mod large_graphs;
