//! A failed call leaves everything as it was.

mod fault_sweep;
mod refusals;
