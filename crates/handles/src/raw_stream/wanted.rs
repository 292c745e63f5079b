//! Who wants a stream alone.

use std::sync::atomic::{AtomicU32, Ordering};

/// What a stream needs for this beside its turn.
#[derive(Debug)]
pub(crate) struct Exclusion {
    /// How many want the stream alone and have found others there.
    wanted: AtomicU32,
    /// Whether it may be one for which the legacy stream waits.
    meets_legacy: bool,
}

impl Exclusion {
    pub(crate) fn new(meets_legacy: bool) -> Self {
        Self { wanted: AtomicU32::new(0), meets_legacy }
    }

    /// Says that somebody wants the stream alone, as long as the result is held.
    pub(crate) fn want(&self) -> Wanted<'_> {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        Wanted(&self.wanted)
    }

    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn meets_legacy(&self) -> bool {
        self.meets_legacy
    }
}

/// Somebody wants it as long as this is held.
pub(crate) struct Wanted<'w>(&'w AtomicU32);

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
