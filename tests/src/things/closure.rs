//! Closures that count their calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often a closure was called.
pub type Count = Arc<AtomicU32>;

/// A closure that counts its calls.
pub fn counter() -> (Count, impl Fn() + Send + Sync + 'static) {
    let count = Count::default();
    let inside = Arc::clone(&count);
    (count, move || {
        inside.fetch_add(1, Ordering::Relaxed);
    })
}

/// The number of calls so far.
#[must_use]
pub fn seen(count: &Count) -> u32 {
    count.load(Ordering::Relaxed)
}
