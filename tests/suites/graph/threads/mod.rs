//! Threads, locks and host functions: nothing waits for ever.

mod beside_events;
mod beside_queries;
mod bounded_waits;
mod inside_host_functions;
mod opposite_orders;
