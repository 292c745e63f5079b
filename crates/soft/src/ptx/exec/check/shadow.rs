//! The accesses that memory remembers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::clock::{BlockClocks, Known};

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// Atomic, volatile, or with a memory order.
    pub(super) is_strong: bool,
    /// Strong among the threads of a block alone.
    pub(super) is_of_block: bool,
}

impl Touch {
    fn is_update(self) -> bool {
        self.reads && self.writes
    }

    /// Whether one is a weak read and the other an atomic update.
    fn is_guess(self, other: Touch) -> bool {
        let weak_read = |touch: Touch| !touch.writes && !touch.is_strong;
        (weak_read(self) && other.is_update()) || (weak_read(other) && self.is_update())
    }
}

/// The accesses that one races with.
#[derive(Default)]
pub(super) struct Races {
    pub(super) race: Option<Record>,
    /// A weak read races with an atomic update. That does no harm if the reader updates the value
    /// itself, by a compare-and-swap that takes the read value for a guess.
    pub(super) guess: Option<Record>,
}

/// An access to some of eight bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) block: u64,
    pub(super) epoch: u32,
    pub(super) function: u32,
    /// The program counter behind the instruction.
    pub(super) pc: u32,
    pub(super) thread: u16,
    /// A bit for each byte.
    pub(super) bytes: u8,
    pub(super) touch: Touch,
}

impl Record {
    pub(super) fn is_of_thread(&self, other: &Record) -> bool {
        (self.block, self.thread) == (other.block, other.thread)
    }

    /// Whether the two race if nothing orders them.
    fn conflicts(&self, other: &Record) -> bool {
        let (one, two) = (self.touch, other.touch);
        let one_block = self.block == other.block || !(one.is_of_block || two.is_of_block);
        (one.writes || two.writes) && !(one.is_strong && two.is_strong && one_block)
    }

    /// Whether every access that races with `old`, which is ordered before this one, races with
    /// this one, too.
    fn covers(&self, old: &Record) -> bool {
        let strength = !self.touch.is_strong
            || (old.touch.is_strong && (self.touch.is_of_block || !old.touch.is_of_block));
        strength && (self.touch.writes || !old.touch.writes)
    }
}

/// The accesses to eight bytes.
#[derive(Default)]
struct Cell {
    records: Vec<Record>,
    /// Strong reads behind all strong writes.
    observers: Vec<Record>,
    /// What strong writes released.
    released: Option<Arc<Known>>,
}

/// More accesses to eight bytes are forgotten.
const MOST_RECORDS: usize = 64;
/// More accesses of the same kind by a warp are forgotten. With two, there is one by another thread
/// than the one that comes next.
const MOST_OF_WARP: usize = 2;

impl Cell {
    /// Adds an access; finds those that it races with.
    fn note(&mut self, clocks: &BlockClocks, new: Record, races: &mut Races) {
        let is_observed = self.observers.iter().any(|read| clocks.knows(new.thread, read));
        let mut alike = 0;
        self.records.retain_mut(|old| {
            let both = old.bytes & new.bytes;
            if both == 0 {
                return true;
            }
            if clocks.knows(new.thread, old) {
                if new.covers(old) {
                    old.bytes &= !both;
                } else if old.is_of_thread(&new) && new.touch.is_update() && !old.touch.writes {
                    // The read was a guess.
                    old.touch.is_strong = true;
                }
                return old.bytes != 0;
            }
            // Who has read a strong write may overwrite it.
            let is_read = is_observed && old.touch.is_strong && old.touch.writes;
            if !is_read && old.conflicts(&new) {
                let kind = if old.touch.is_guess(new.touch) { &mut races.guess } else { &mut races.race };
                kind.get_or_insert(Record { bytes: both, ..*old });
            }
            let is_of_warp = old.block == new.block && old.thread / 32 == new.thread / 32;
            alike += usize::from(is_of_warp && old.touch == new.touch && old.bytes & new.bytes == new.bytes);
            true
        });
        if alike < MOST_OF_WARP && self.records.len() < MOST_RECORDS {
            self.records.push(new);
        }
    }

    /// Releases and acquires by a strong access.
    fn order(&mut self, clocks: &mut BlockClocks, new: Record, place: u64) {
        let thread = usize::from(new.thread);
        if new.touch.writes {
            self.observers.clear();
            clocks.release(thread, place, &mut self.released);
        }
        if new.touch.reads {
            if self.observers.len() < MOST_RECORDS {
                self.observers.retain(|read| !read.is_of_thread(&new));
                self.observers.push(new);
            }
            if let Some(released) = &self.released {
                clocks.acquire(thread, released);
            }
        }
    }
}

/// Spreads numbers that follow each other.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

/// The accesses to a memory.
#[derive(Default)]
pub(super) struct Shadow(HashMap<u64, Cell, BuildHasherDefault<Spread>>);

impl Shadow {
    /// Adds an access to `len` bytes from `place` on; finds those that it races with.
    pub(super) fn note(&mut self, clocks: &mut BlockClocks, access: Record, place: u64, len: u32) -> Races {
        let end = place.saturating_add(u64::from(len));
        let mut races = Races::default();
        for index in place / 8..end.div_ceil(8) {
            let first = place.saturating_sub(index * 8);
            let behind = (end - index * 8).min(8);
            let bytes = (0xff_u8 << first) & (0xff_u8 >> (8 - behind));
            let cell = self.0.entry(index).or_default();
            cell.note(clocks, Record { bytes, ..access }, &mut races);
            if access.touch.is_strong {
                cell.order(clocks, access, index);
            }
        }
        races
    }
}
