//! Everything lives as long as somebody may use it, and no longer.

mod constant_memory;
mod deferred_destruction;
mod long_chains;
mod owners;
mod panicking_drops;
mod released_by_next_call;
mod until_over;
