//! A failed call leaves everything as it was.

mod all_or_nothing;
mod failed_undo_of_conditions;
mod failed_undo_of_insertions;
mod failed_undo_of_kernels;
mod fault_sweep;
mod refusals;
