//! A launch comes after all that its memory waits for.

mod memory_readiness;
mod pool_memory;
mod recorded_events;
