//! When work counts as done.

mod completion;
mod elapsed_time;
