//! Threads, locks and host functions: nothing waits for ever.

mod bounded_waits;
mod held_up_by_waits;
mod inside_host_functions;
