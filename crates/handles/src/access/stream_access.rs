//! Many who use something, or one who changes it. Using is cheap, changing need not be.
//!
//! Who uses writes the thing's number into a slot of the own thread ([`Block`]), passes the light
//! half of a [barrier], and looks for a mark. Who changes sets the mark, passes the heavy half, and
//! looks through the slots of all threads. Each has stored before it looks, so at least one of the
//! two sees the other: a user that sees the mark takes its slot back and has no turn, a changer
//! that sees a slot gives up and takes the mark back. So nobody waits while it stands in somebody's
//! way, and no locked instruction is needed for a use. Here nobody waits at all: who got no turn
//! may be in a host function, for which the other one waits.
//!
//! A thread without a block or with all slots full counts itself on the thing, where the mark is,
//! by an atomic operation that takes the place of both store and look.
//!
//! What one has done the next one sees: users leave by a release store to the slot or the count,
//! which the changer reads by an acquire load; the changer takes the mark back by a release, which
//! users read by an acquire.

use super::barrier;
use super::blocks::{Block, Blocks, Slot};
use crate::sync::{AtomicU32, Ordering, spin_loop};

/// Set while somebody changes.
const CHANGING: u32 = 1 << 31;
/// Two signs that stand in the same word, so that who uses reads them along.
pub(crate) const CAPTURED: u32 = 1 << 30;
pub(crate) const FOREIGN: u32 = 1 << 29;
const SIGNS: u32 = CAPTURED | FOREIGN;
// Below them those are counted who use without a slot.

/// How often a changer looks, some microseconds altogether: uses that are mostly over soon it
/// outlasts, so that many short ones after another do not keep it off for ever.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 64 };

/// Who has a turn.
#[derive(Debug)]
pub(crate) struct Turns {
    number: u64,
    state: AtomicU32,
}

/// One of those who use.
#[derive(Debug)]
#[must_use]
pub(crate) struct Shared<'t> {
    turns: &'t Turns,
    /// Where the turn is written down; else it is counted.
    slot: Option<&'t Slot>,
    signs: u32,
}

/// The one who changes.
#[derive(Debug)]
#[must_use]
pub(crate) struct Alone<'t>(&'t Turns);

impl Turns {
    /// Of a thing whose number, not 0, is no other's.
    pub(crate) fn new(number: u64) -> Self {
        Self { number, state: AtomicU32::new(0) }
    }

    /// A turn to use, with the calling thread's block; `None` while somebody changes, never because
    /// somebody only wants to. Whether to wait is for the caller to say: a change lasts as long as
    /// a driver call.
    #[inline]
    pub(crate) fn share<'t>(&'t self, block: Option<&'t Block>) -> Option<Shared<'t>> {
        let slot = block.and_then(Block::slot);
        let state = self.enter(slot);
        if state & CHANGING != 0 {
            self.leave(slot);
            return None;
        }
        // Put together in one place, of values in registers.
        Some(Shared { turns: self, slot, signs: state & SIGNS })
    }

    /// As [`share`](Self::share), for who tries again: he stays out of the way as long as the mark
    /// stands, so that he keeps nobody from changing.
    pub(crate) fn share_again<'t>(&'t self, block: Option<&'t Block>) -> Option<Shared<'t>> {
        if self.state.load(Ordering::Relaxed) & CHANGING != 0 {
            return None;
        }
        self.share(block)
    }

    /// Writes a use down, and gives the word read after that.
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

    /// Which of the two signs stand.
    #[inline]
    pub(crate) fn signs(&self) -> u32 {
        self.state.load(Ordering::Acquire) & SIGNS
    }

    /// Sets a sign. Users that have their turn already do not see it.
    pub(crate) fn set(&self, sign: u32) {
        self.state.fetch_or(sign & SIGNS, Ordering::AcqRel);
    }

    /// Takes a sign back.
    pub(crate) fn clear(&self, sign: u32) {
        self.state.fetch_and(!(sign & SIGNS), Ordering::AcqRel);
    }

    /// Its number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// How many use it without a slot.
    pub(crate) fn counted(&self) -> u32 {
        self.state.load(Ordering::Acquire) & !(SIGNS | CHANGING)
    }

    /// A turn to change, if nobody has any. `blocks` are those of all threads.
    pub(crate) fn try_alone(&self, blocks: &Blocks) -> Option<Alone<'_>> {
        if self.state.fetch_or(CHANGING, Ordering::AcqRel) & CHANGING != 0 {
            return None;
        }
        let alone = Alone(self);
        barrier::heavy();
        let free = || self.state.load(Ordering::Acquire) & !SIGNS == CHANGING && !blocks.have(self.number);
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

impl Shared<'_> {
    /// Which of the two signs stood at the beginning of the turn.
    #[inline]
    pub(crate) fn signs(&self) -> u32 {
        self.signs
    }
}

impl Drop for Shared<'_> {
    #[inline]
    fn drop(&mut self) {
        self.turns.leave(self.slot);
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        // Others may have counted themselves in for a moment.
        self.0.state.fetch_and(!CHANGING, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::own_block::{BLOCKS, own_block};
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread::yield_now;

    /// Numbers that no stream of these tests has.
    fn turns() -> Turns {
        static NEXT: AtomicU64 = AtomicU64::new(1 << 40);
        Turns::new(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    impl Turns {
        /// A turn to use, once nobody changes.
        fn wait<'t>(&'t self, block: Option<&'t super::Block>) -> Shared<'t> {
            let mut turn = self.share(block);
            loop {
                match turn {
                    Some(turn) => return turn,
                    None => yield_now(),
                }
                turn = self.share_again(block);
            }
        }
    }

    /// The two ways to share.
    type Block = Option<&'static super::Block>;
    const WAYS: [fn() -> Block; 2] = [own_block, || None];

    #[test]
    fn users_and_changers_exclude_each_other() {
        for way in WAYS {
            let turns = turns();
            let (one, two) = (turns.wait(way()), turns.wait(way()));
            assert!(turns.try_alone(&BLOCKS).is_none());
            drop(one);
            assert!(turns.try_alone(&BLOCKS).is_none());
            drop(two);
            let alone = turns.try_alone(&BLOCKS);
            assert!(alone.is_some() && turns.try_alone(&BLOCKS).is_none());
            assert!(turns.share(way()).is_none() && turns.share_again(way()).is_none());
            drop(alone);
            drop(turns.wait(way()));
            assert!(turns.try_alone(&BLOCKS).is_some());
        }
    }

    #[test]
    fn uses_of_one_thing_do_not_keep_another_from_being_changed() {
        let (one, other) = (turns(), turns());
        let _turn = one.wait(own_block());
        assert!(other.try_alone(&BLOCKS).is_some());
    }

    #[test]
    fn a_thread_can_use_any_number_of_things_and_leave_them_in_any_order() {
        let things: Vec<_> = (0..20).map(|_| turns()).collect();
        let mut held: Vec<_> = things.iter().map(|turns| turns.wait(own_block())).collect();
        let free = || things.iter().filter(|turns| turns.try_alone(&BLOCKS).is_some()).count();
        for left in (0..20).rev() {
            assert_eq!(free(), 19 - left);
            drop(held.swap_remove(left / 2));
        }
        assert_eq!(free(), 20);
    }

    #[test]
    fn a_turn_taken_on_one_thread_can_be_left_on_another() {
        let turns = turns();
        std::thread::scope(|scope| {
            let turn = scope.spawn(|| turns.wait(own_block())).join().expect("it does not panic");
            // The thread has ended, and its block may be another's.
            assert!(turns.try_alone(&BLOCKS).is_none());
            scope.spawn(move || drop(turn));
        });
        assert!(turns.try_alone(&BLOCKS).is_some());
    }

    #[test]
    fn a_destructor_that_runs_while_its_thread_ends_can_share() {
        struct Shares(std::sync::Arc<Turns>);
        impl Drop for Shares {
            fn drop(&mut self) {
                let _turn = self.0.wait(own_block());
                assert!(self.0.try_alone(&BLOCKS).is_none());
            }
        }
        thread_local!(static LATE: core::cell::RefCell<Option<Shares>> = const { core::cell::RefCell::new(None) });
        let turns = std::sync::Arc::new(turns());
        for before in [false, true] {
            let shares = Shares(std::sync::Arc::clone(&turns));
            let thread = std::thread::spawn(move || {
                if before {
                    let _ = own_block();
                }
                LATE.set(Some(shares));
                let _ = own_block();
            });
            thread.join().expect("it does not panic");
            assert!(turns.try_alone(&BLOCKS).is_some());
        }
    }

    #[test]
    fn threads_that_have_ended_leave_their_blocks_to_others() {
        let address = || std::thread::spawn(|| own_block().map(|block| core::ptr::from_ref(block).addr()));
        let mut blocks: Vec<_> = (0..200).map(|_| address().join().expect("it does not panic")).collect();
        blocks.sort_unstable();
        blocks.dedup();
        // Other tests have threads of their own.
        assert!(blocks.len() < 100, "{} blocks for 200 threads", blocks.len());
    }

    /// Two numbers that are equal whenever nobody has a turn to change. Atomics, so that a failure
    /// is one of the test alone; relaxed, so that all order is that of the turns.
    #[derive(Default)]
    struct Twins([AtomicU64; 2]);

    impl Twins {
        fn get(&self) -> [u64; 2] {
            [0, 1].map(|index| self.0[index].load(Ordering::Relaxed))
        }

        /// Takes a moment, so that a user who is there at the same time notices.
        fn add_one(&self, _alone: Alone<'_>) {
            let [before, _] = self.get();
            self.0[0].store(before + 1, Ordering::Relaxed);
            (0..8).for_each(|_| spin_loop());
            self.0[1].store(before + 1, Ordering::Relaxed);
        }
    }

    fn patiently(turns: &Turns) -> Alone<'_> {
        loop {
            match turns.try_alone(&BLOCKS) {
                Some(alone) => return alone,
                None => yield_now(),
            }
        }
    }

    #[test]
    fn nothing_is_lost_under_contention() {
        const CHANGES: u64 = 500;
        for ways in [[WAYS[0], WAYS[0]], [WAYS[1], WAYS[1]], WAYS] {
            let (turns, twins) = (turns(), Twins::default());
            std::thread::scope(|scope| {
                for way in ways {
                    scope.spawn(|| (0..CHANGES).for_each(|_| twins.add_one(patiently(&turns))));
                    let (turns, twins) = (&turns, &twins);
                    // Users that never pause keep nobody off.
                    scope.spawn(move || {
                        let mut seen = 0;
                        while seen < 2 * CHANGES {
                            let _turn = turns.wait(way());
                            let [first, second] = twins.get();
                            assert!(first == second && first >= seen, "{first} and {second} after {seen}");
                            assert_eq!(twins.get(), [first, second]);
                            seen = first;
                        }
                    });
                }
            });
            assert_eq!(twins.get(), [2 * CHANGES; 2]);
        }
    }
}
