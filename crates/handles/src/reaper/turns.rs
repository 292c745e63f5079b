//! Many who use something, or one who changes it. Two atomic operations for a use: std's lock takes twice the time.

use std::sync::atomic::{AtomicU32, Ordering};

/// Set while somebody changes; below it those who use are counted.
const CHANGING: u32 = 1 << 31;

/// Who has a turn.
#[derive(Debug, Default)]
pub(crate) struct Turns(AtomicU32);

/// One of those who use.
#[derive(Debug)]
#[must_use]
pub(crate) struct Shared<'t>(&'t Turns);

/// The one who changes.
#[derive(Debug)]
#[must_use]
pub(crate) struct Alone<'t>(&'t Turns);

impl Turns {
    /// A turn to use. It waits while somebody changes, never for one who only wants to.
    #[inline]
    pub(crate) fn share(&self) -> Shared<'_> {
        if self.0.fetch_add(1, Ordering::Acquire) & CHANGING != 0 {
            self.share_later();
        }
        Shared(self)
    }

    #[cold]
    fn share_later(&self) {
        loop {
            self.0.fetch_sub(1, Ordering::Relaxed);
            while self.0.load(Ordering::Relaxed) & CHANGING != 0 {
                std::thread::yield_now();
            }
            if self.0.fetch_add(1, Ordering::Acquire) & CHANGING == 0 {
                return;
            }
        }
    }

    /// A turn to change, if nobody has any.
    pub(crate) fn try_alone(&self) -> Option<Alone<'_>> {
        let free = self.0.compare_exchange(0, CHANGING, Ordering::Acquire, Ordering::Relaxed);
        free.ok().map(|_| Alone(self))
    }
}

impl Drop for Shared<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        // Others may have counted themselves in for a moment.
        self.0.0.fetch_and(!CHANGING, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_changers_exclude_each_other() {
        let turns = Turns::default();
        let (one, two) = (turns.share(), turns.share());
        assert!(turns.try_alone().is_none());
        drop((one, two));
        let alone = turns.try_alone();
        assert!(alone.is_some() && turns.try_alone().is_none());
        drop(alone);
        drop(turns.share());
        assert!(turns.try_alone().is_some());
    }

    #[test]
    fn nothing_is_lost_under_contention() {
        struct Count(core::cell::UnsafeCell<u64>);
        // SAFETY: it is read and written with a turn alone, or read with a shared one.
        unsafe impl Sync for Count {}
        let (turns, count) = (Turns::default(), Count(core::cell::UnsafeCell::new(0)));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let shared = &count;
                    for _ in 0..2_000 {
                        let alone = loop {
                            match turns.try_alone() {
                                Some(alone) => break alone,
                                None => std::thread::yield_now(),
                            }
                        };
                        // SAFETY: alone.
                        unsafe { *shared.0.get() += 1 };
                        drop(alone);
                    }
                });
                scope.spawn(|| {
                    let shared = &count;
                    for _ in 0..2_000 {
                        let _turn = turns.share();
                        // SAFETY: nobody changes it meanwhile.
                        assert!(unsafe { *shared.0.get() } <= 4_000);
                    }
                });
            }
        });
        assert_eq!(count.0.into_inner(), 4_000);
    }
}
