//! Slots: each thread announces there which streams it is reading.
//!
//! Every thread has a few slots of its own and fills them by plain stores. The slots of a thread
//! that has ended go to the next thread that needs some, so the list grows up to the largest number
//! of threads that ever existed at the same time.

use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// The number of a stream that is being read, or 0. Numbers are never used again, so a slot that is
/// never emptied stands for no other stream.
#[derive(Debug)]
pub(crate) struct Slot(AtomicU64);

impl Slot {
    #[inline]
    fn is_empty(&self) -> bool {
        // Another thread may have emptied it.
        self.0.load(Ordering::Acquire) == 0
    }

    /// Announces a read. All stores to slots are releases: a thread that loads one sees what the
    /// slot's thread did before.
    #[inline]
    pub(crate) fn fill(&self, number: u64) {
        self.0.store(number, Ordering::Release);
    }

    #[inline]
    pub(crate) fn empty(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// The slots of a thread. A thread that reads more streams at once counts itself in the others.
pub(crate) const SLOTS: usize = 4;

/// The slots of one thread, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct ThreadSlots {
    slots: [Slot; SLOTS],
    taken: AtomicBool,
    next: Option<&'static Self>,
}

impl ThreadSlots {
    fn new() -> Self {
        let slots = core::array::from_fn(|_| Slot(AtomicU64::new(0)));
        Self { slots, taken: AtomicBool::new(true), next: None }
    }

    /// An empty slot, if there is one. Only the owning thread may fill it.
    #[inline]
    pub(crate) fn slot(&self) -> Option<&Slot> {
        let [first, rest @ ..] = &self.slots;
        if first.is_empty() { Some(first) } else { rest.iter().find(|slot| slot.is_empty()) }
    }

    /// The numbers in the slots.
    pub(crate) fn numbers(&self) -> [u64; SLOTS] {
        core::array::from_fn(|slot| self.slots.get(slot).map_or(0, |slot| slot.0.load(Ordering::Acquire)))
    }

    fn take(&self) -> bool {
        let free = || self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        !self.taken.load(Ordering::Relaxed) && free().is_ok()
    }

    /// Releases the slots, for another thread to take.
    pub(crate) fn give_back(&self) {
        self.taken.store(false, Ordering::Release);
    }
}

/// The slots of all threads.
#[derive(Debug)]
pub(crate) struct AllSlots(AtomicPtr<ThreadSlots>);

impl AllSlots {
    /// A list that starts with this head; a null one for an empty list.
    pub(crate) const fn starting_with(head: AtomicPtr<ThreadSlots>) -> Self {
        Self(head)
    }

    fn all(&self) -> impl Iterator<Item = &'static ThreadSlots> {
        // SAFETY: an entry of the list is never freed and, but for its atomics, never changed.
        let first = unsafe { self.0.load(Ordering::Acquire).as_ref() };
        core::iter::successors(first, |slots| slots.next)
    }

    /// Slots for a thread that has none.
    pub(crate) fn take(&self) -> &'static ThreadSlots {
        self.all().find(|slots| slots.take()).unwrap_or_else(|| self.add())
    }

    fn add(&self) -> &'static ThreadSlots {
        let slots = Box::into_raw(Box::new(ThreadSlots::new()));
        let mut head = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: the entry is ours until the exchange below succeeds; the one before it is
            // never freed.
            unsafe { (*slots).next = head.as_ref() };
            match self.0.compare_exchange_weak(head, slots, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: it is never freed.
                Ok(_) => return unsafe { &*slots },
                Err(found) => head = found,
            }
        }
    }

    /// The reads of a stream that are announced in slots, each with the index of its slot.
    pub(crate) fn using(&self, number: u64) -> impl Iterator<Item = (&'static ThreadSlots, usize)> {
        self.all().flat_map(move |slots| {
            let numbers = slots.numbers().into_iter().enumerate();
            numbers.filter(move |&(_, other)| other == number).map(move |(slot, _)| (slots, slot))
        })
    }

    /// Whether a slot has this number.
    pub(crate) fn have(&self, number: u64) -> bool {
        let mut slots = self.all().flat_map(|slots| &slots.slots);
        slots.any(|slot| slot.0.load(Ordering::Acquire) == number)
    }
}
