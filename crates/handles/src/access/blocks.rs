//! What each thread is using just now, written down where others find it.
//!
//! Every thread has a block of its own, with a few slots; it alone fills them, by plain stores. A
//! block whose thread has ended goes to the next thread that needs one. The list of blocks only
//! grows, up to the number of threads that ever were at the same time.

use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// The number of a thing in use, 0 for none. Numbers are never used again: a slot that is never
/// emptied stands for nothing else.
#[derive(Debug)]
pub(crate) struct Slot(AtomicU64);

impl Slot {
    #[inline]
    fn is_empty(&self) -> bool {
        // Perhaps another thread emptied it.
        self.0.load(Ordering::Acquire) == 0
    }

    /// Says that the thing is in use. All stores to slots are releases: whoever reads one has what
    /// its thread did before.
    #[inline]
    pub(crate) fn fill(&self, number: u64) {
        self.0.store(number, Ordering::Release);
    }

    #[inline]
    pub(crate) fn empty(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// Things that a thread mostly uses at the same time, at the most.
pub(crate) const SLOTS: usize = 4;

/// A thread's slots, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Block {
    slots: [Slot; SLOTS],
    taken: AtomicBool,
    next: Option<&'static Self>,
}

impl Block {
    fn new() -> Self {
        let slots = core::array::from_fn(|_| Slot(AtomicU64::new(0)));
        Self { slots, taken: AtomicBool::new(true), next: None }
    }

    /// An empty slot, if there is one. Only the thread that has the block may fill it.
    #[inline]
    pub(crate) fn slot(&self) -> Option<&Slot> {
        let [first, rest @ ..] = &self.slots;
        if first.is_empty() { Some(first) } else { rest.iter().find(|slot| slot.is_empty()) }
    }

    /// What is in its slots.
    pub(crate) fn numbers(&self) -> [u64; SLOTS] {
        core::array::from_fn(|slot| self.slots.get(slot).map_or(0, |slot| slot.0.load(Ordering::Acquire)))
    }

    fn take(&self) -> bool {
        let free = || self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        !self.taken.load(Ordering::Relaxed) && free().is_ok()
    }

    /// The thread needs it no more.
    pub(crate) fn give_back(&self) {
        self.taken.store(false, Ordering::Release);
    }
}

/// All blocks.
#[derive(Debug)]
pub(crate) struct Blocks(AtomicPtr<Block>);

impl Blocks {
    /// A list that starts with this head; a null one for an empty list.
    pub(crate) const fn starting_with(head: AtomicPtr<Block>) -> Self {
        Self(head)
    }

    fn all(&self) -> impl Iterator<Item = &'static Block> {
        // SAFETY: a block in the list is never freed and, but for its atomics, never changed.
        let first = unsafe { self.0.load(Ordering::Acquire).as_ref() };
        core::iter::successors(first, |block| block.next)
    }

    /// A block for a thread.
    pub(crate) fn take(&self) -> &'static Block {
        self.all().find(|block| block.take()).unwrap_or_else(|| self.add())
    }

    fn add(&self) -> &'static Block {
        let block = Box::into_raw(Box::new(Block::new()));
        let mut head = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: the block is ours until the exchange below succeeds; the one before it is
            // never freed.
            unsafe { (*block).next = head.as_ref() };
            match self.0.compare_exchange_weak(head, block, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: it is never freed.
                Ok(_) => return unsafe { &*block },
                Err(found) => head = found,
            }
        }
    }

    /// The uses of a thing: each with its block and the number of its slot there.
    pub(crate) fn using(&self, number: u64) -> impl Iterator<Item = (&'static Block, usize)> {
        self.all().flat_map(move |block| {
            let slots = block.numbers().into_iter().enumerate();
            slots.filter(move |&(_, other)| other == number).map(move |(slot, _)| (block, slot))
        })
    }

    /// Whether a thing is in use.
    pub(crate) fn have(&self, number: u64) -> bool {
        let mut slots = self.all().flat_map(|block| &block.slots);
        slots.any(|slot| slot.0.load(Ordering::Acquire) == number)
    }
}
