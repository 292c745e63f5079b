//! The access of one stream: the protocol of this [room](super), in code.

use super::barrier;
use super::slots::{AllSlots, Slot, ThreadSlots};
use crate::sync::{AtomicU32, Ordering, spin_loop};

/// Set while a writer has, or tries to get, exclusive access.
const EXCLUSIVE: u32 = 1 << 31;
/// The stream is in a capture of this library.
pub(crate) const CAPTURED: u32 = 1 << 30;
/// Other code may capture the stream, so that the driver has to be asked.
pub(crate) const FOREIGN: u32 = 1 << 29;
/// The stream is for captures alone: work that would run at once is refused.
pub(crate) const ONLY_CAPTURES: u32 = 1 << 28;
const FLAGS: u32 = CAPTURED | FOREIGN | ONLY_CAPTURES;
// The bits below count readers without a slot.

/// How often a writer looks, some microseconds altogether: it outlasts short reads, so that many of
/// them in a row do not keep it out.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 64 };

/// The access of a stream.
#[derive(Debug)]
pub(crate) struct StreamAccess {
    number: u64,
    state: AtomicU32,
}

/// Read access: no capture of this library begins or ends on the stream while this is held.
#[derive(Debug)]
#[must_use]
pub(crate) struct ReadGuard<'t> {
    access: &'t StreamAccess,
    /// The slot that announces the read; without a slot it is counted.
    slot: Option<&'t Slot>,
    flags: u32,
}

/// Exclusive access: no thread enqueues on the stream while this is held.
#[derive(Debug)]
#[must_use]
pub(crate) struct ExclusiveGuard<'t>(&'t StreamAccess);

impl StreamAccess {
    /// The access of a stream with this number, which is not 0 and no other stream's.
    pub(crate) fn new(number: u64) -> Self {
        Self { number, state: AtomicU32::new(0) }
    }

    /// Read access, announced in a slot of the calling thread; `None` while a writer has, or tries
    /// to get, exclusive access. Whether to wait is up to the caller: a write lasts as long as a
    /// driver call.
    #[inline]
    pub(crate) fn read<'t>(&'t self, slots: Option<&'t ThreadSlots>) -> Option<ReadGuard<'t>> {
        let slot = slots.and_then(ThreadSlots::slot);
        let state = self.enter(slot);
        if state & EXCLUSIVE != 0 {
            self.leave(slot);
            return None;
        }
        // Built in one place, from values in registers.
        Some(ReadGuard { access: self, slot, flags: state & FLAGS })
    }

    /// As [`read`](Self::read), for a retry: it announces nothing while a writer is there, so that
    /// retries keep no writer out.
    pub(crate) fn read_again<'t>(&'t self, slots: Option<&'t ThreadSlots>) -> Option<ReadGuard<'t>> {
        if self.state.load(Ordering::Relaxed) & EXCLUSIVE != 0 {
            return None;
        }
        self.read(slots)
    }

    /// Announces a read, and returns the state loaded after that.
    #[inline]
    fn enter(&self, slot: Option<&Slot>) -> u32 {
        let Some(slot) = slot else { return self.count() };
        slot.fill(self.number);
        barrier::light();
        self.state.load(Ordering::Acquire)
    }

    #[cold]
    fn count(&self) -> u32 {
        self.state.fetch_add(1, Ordering::Acquire)
    }

    #[inline]
    fn leave(&self, slot: Option<&Slot>) {
        match slot {
            Some(slot) => slot.empty(),
            None => self.uncount(),
        }
    }

    #[cold]
    fn uncount(&self) {
        self.state.fetch_sub(1, Ordering::Release);
    }

    /// The two flags.
    #[inline]
    pub(crate) fn flags(&self) -> u32 {
        self.state.load(Ordering::Acquire) & FLAGS
    }

    /// Sets a flag. Readers that have entered already do not see it.
    pub(crate) fn set(&self, sign: u32) {
        self.state.fetch_or(sign & FLAGS, Ordering::AcqRel);
    }

    /// Clears a flag.
    pub(crate) fn clear(&self, sign: u32) {
        self.state.fetch_and(!(sign & FLAGS), Ordering::AcqRel);
    }

    /// The stream's number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// How many readers have no slot.
    pub(crate) fn counted(&self) -> u32 {
        self.state.load(Ordering::Acquire) & !(FLAGS | EXCLUSIVE)
    }

    /// Exclusive access, if there are no readers and no other writer. `slots` are those of all
    /// threads.
    pub(crate) fn try_exclusive(&self, slots: &AllSlots) -> Option<ExclusiveGuard<'_>> {
        if self.state.fetch_or(EXCLUSIVE, Ordering::AcqRel) & EXCLUSIVE != 0 {
            return None;
        }
        let alone = ExclusiveGuard(self);
        barrier::heavy();
        let free = || self.state.load(Ordering::Acquire) & !FLAGS == EXCLUSIVE && !slots.have(self.number);
        let mut looks = 1;
        while !free() {
            if looks == LOOKS {
                return None;
            }
            looks += 1;
            spin_loop();
        }
        Some(alone)
    }
}

impl ReadGuard<'_> {
    /// The two flags as they were when the read began.
    #[inline]
    pub(crate) fn flags(&self) -> u32 {
        self.flags
    }
}

impl Drop for ReadGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.access.leave(self.slot);
    }
}

impl Drop for ExclusiveGuard<'_> {
    fn drop(&mut self) {
        // Readers may have counted themselves for a moment.
        self.0.state.fetch_and(!EXCLUSIVE, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::own_slots::{ALL_SLOTS, own_slots};
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread::yield_now;

    /// An access with a number that no stream of these tests has.
    fn access() -> StreamAccess {
        static NEXT: AtomicU64 = AtomicU64::new(1 << 40);
        StreamAccess::new(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    impl StreamAccess {
        /// Read access, once there is no writer.
        fn wait<'t>(&'t self, slots: Option<&'t super::ThreadSlots>) -> ReadGuard<'t> {
            let mut guard = self.read(slots);
            loop {
                match guard {
                    Some(guard) => return guard,
                    None => yield_now(),
                }
                guard = self.read_again(slots);
            }
        }
    }

    /// The two ways to announce a read.
    type ThreadSlots = Option<&'static super::ThreadSlots>;
    const WAYS: [fn() -> ThreadSlots; 2] = [own_slots, || None];

    #[test]
    fn readers_and_writers_exclude_each_other() {
        for way in WAYS {
            let access = access();
            let (one, two) = (access.wait(way()), access.wait(way()));
            assert!(access.try_exclusive(&ALL_SLOTS).is_none());
            drop(one);
            assert!(access.try_exclusive(&ALL_SLOTS).is_none());
            drop(two);
            let alone = access.try_exclusive(&ALL_SLOTS);
            assert!(alone.is_some() && access.try_exclusive(&ALL_SLOTS).is_none());
            assert!(access.read(way()).is_none() && access.read_again(way()).is_none());
            drop(alone);
            drop(access.wait(way()));
            assert!(access.try_exclusive(&ALL_SLOTS).is_some());
        }
    }

    #[test]
    fn reads_of_one_stream_do_not_keep_writers_out_of_another() {
        let (one, other) = (access(), access());
        let _guard = one.wait(own_slots());
        assert!(other.try_exclusive(&ALL_SLOTS).is_some());
    }

    #[test]
    fn a_thread_can_read_any_number_of_streams_and_leave_them_in_any_order() {
        let things: Vec<_> = (0..20).map(|_| access()).collect();
        let mut held: Vec<_> = things.iter().map(|access| access.wait(own_slots())).collect();
        let free = || things.iter().filter(|access| access.try_exclusive(&ALL_SLOTS).is_some()).count();
        for left in (0..20).rev() {
            assert_eq!(free(), 19 - left);
            drop(held.swap_remove(left / 2));
        }
        assert_eq!(free(), 20);
    }

    #[test]
    fn a_guard_taken_on_one_thread_can_be_dropped_on_another() {
        let access = access();
        std::thread::scope(|scope| {
            let guard = scope.spawn(|| access.wait(own_slots())).join().expect("it does not panic");
            // The thread has ended, and its slots may be another's.
            assert!(access.try_exclusive(&ALL_SLOTS).is_none());
            scope.spawn(move || drop(guard));
        });
        assert!(access.try_exclusive(&ALL_SLOTS).is_some());
    }

    #[test]
    fn a_destructor_that_runs_while_its_thread_ends_can_share() {
        struct Shares(std::sync::Arc<StreamAccess>);
        impl Drop for Shares {
            fn drop(&mut self) {
                let _guard = self.0.wait(own_slots());
                assert!(self.0.try_exclusive(&ALL_SLOTS).is_none());
            }
        }
        thread_local!(static LATE: core::cell::RefCell<Option<Shares>> = const { core::cell::RefCell::new(None) });
        let access = std::sync::Arc::new(access());
        for before in [false, true] {
            let shares = Shares(std::sync::Arc::clone(&access));
            let thread = std::thread::spawn(move || {
                if before {
                    let _ = own_slots();
                }
                LATE.set(Some(shares));
                let _ = own_slots();
            });
            thread.join().expect("it does not panic");
            assert!(access.try_exclusive(&ALL_SLOTS).is_some());
        }
    }

    #[test]
    fn threads_that_have_ended_leave_their_slots_to_others() {
        let address = || std::thread::spawn(|| own_slots().map(|slots| core::ptr::from_ref(slots).addr()));
        let mut slots: Vec<_> = (0..200).map(|_| address().join().expect("it does not panic")).collect();
        slots.sort_unstable();
        slots.dedup();
        // Other tests have threads of their own.
        assert!(slots.len() < 100, "{} blocks for 200 threads", slots.len());
    }

    /// Two numbers that are equal whenever nobody has exclusive access. Atomics, so that a failure
    /// is not undefined behaviour; relaxed, so that all order comes from the protocol.
    #[derive(Default)]
    struct Pair([AtomicU64; 2]);

    impl Pair {
        fn get(&self) -> [u64; 2] {
            [0, 1].map(|index| self.0[index].load(Ordering::Relaxed))
        }

        /// Takes a moment, so that a reader at the same time would notice.
        fn add_one(&self, _alone: ExclusiveGuard<'_>) {
            let [before, _] = self.get();
            self.0[0].store(before + 1, Ordering::Relaxed);
            (0..8).for_each(|_| spin_loop());
            self.0[1].store(before + 1, Ordering::Relaxed);
        }
    }

    fn patiently(access: &StreamAccess) -> ExclusiveGuard<'_> {
        loop {
            match access.try_exclusive(&ALL_SLOTS) {
                Some(alone) => return alone,
                None => yield_now(),
            }
        }
    }

    #[test]
    fn nothing_is_lost_under_contention() {
        const CHANGES: u64 = 500;
        for ways in [[WAYS[0], WAYS[0]], [WAYS[1], WAYS[1]], WAYS] {
            let (access, pair) = (access(), Pair::default());
            std::thread::scope(|scope| {
                for way in ways {
                    scope.spawn(|| (0..CHANGES).for_each(|_| pair.add_one(patiently(&access))));
                    let (access, pair) = (&access, &pair);
                    // Readers that never pause keep no writer out.
                    scope.spawn(move || {
                        let mut seen = 0;
                        while seen < 2 * CHANGES {
                            let _guard = access.wait(way());
                            let [first, second] = pair.get();
                            assert!(first == second && first >= seen, "{first} and {second} after {seen}");
                            assert_eq!(pair.get(), [first, second]);
                            seen = first;
                        }
                    });
                }
            });
            assert_eq!(pair.get(), [2 * CHANGES; 2]);
        }
    }
}
