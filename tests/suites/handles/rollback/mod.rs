//! A failed call leaves everything as it was.

mod fault_sweep;
mod query_sweep;
mod refusals;
