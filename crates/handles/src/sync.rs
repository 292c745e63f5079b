//! The atomics of the lock-free list. The loom model compiles the list with loom's in their place.

pub(crate) use std::sync::atomic::{AtomicPtr, Ordering};
