//! The memory that graphs have mapped of each device, in steps.
//!
//! The addresses of a graph are its own, the memory behind them is not: a launch takes whatever no
//! other launch has at that time and nothing lives in. What the device has given to graphs falls by
//! a trim alone, or where other memory finds no room.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::accounting::{self, release, try_reserve};
use super::range::STEP;
use crate::driver;
use crate::sync::lock;

/// Work that has some of the memory until it is done.
#[derive(Debug, Clone)]
pub(crate) struct MappingUser {
    /// The stream: work on the same one comes later.
    pub(crate) stream: u64,
    /// The executable, whose launches come one after the other wherever they are; 0 for a free.
    pub(crate) exec: u64,
    pub(crate) done: Arc<AtomicBool>,
}

impl MappingUser {
    fn is_over_for(&self, next: &Self) -> bool {
        self.stream == next.stream || (self.exec != 0 && self.exec == next.exec) || self.is_done()
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }
}

/// A step of the device's memory.
#[derive(Debug, Default)]
struct Piece {
    /// Where it is mapped to, by the number of that step of addresses, as long as something lives
    /// there.
    lives_at: Option<u64>,
    users: Vec<MappingUser>,
    /// It was in use at the moment of a launch in which most was.
    used: bool,
}

impl Piece {
    fn is_free_for(&mut self, next: &MappingUser) -> bool {
        self.users.retain(|user| !user.is_done());
        self.lives_at.is_none() && self.users.iter().all(|user| user.is_over_for(next))
    }
}

#[derive(Debug, Default)]
struct Mapped {
    pieces: Vec<Piece>,
    used_high: u64,
    reserved_high: u64,
    /// A launch asked for more than there was: all that there is stays reserved for good.
    is_exhausted: bool,
}

/// The figures that a device tells, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) used: u64,
    pub(crate) reserved: u64,
    pub(crate) used_high: u64,
    pub(crate) reserved_high: u64,
}

/// What a launch or an upload needs of a device, in steps of addresses.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    pub(crate) all: BTreeSet<u64>,
    /// Those of the moment at which most are in use.
    pub(crate) at_once: BTreeSet<u64>,
    /// Those in which something lives on.
    pub(crate) kept: BTreeSet<u64>,
}

static MAPPED: Mutex<BTreeMap<i32, Mapped>> = Mutex::new(BTreeMap::new());

/// The numbers of the steps in which a range lies.
pub(crate) fn steps(start: u64, len: u64) -> impl Iterator<Item = u64> {
    start / STEP..start.saturating_add(len).div_ceil(STEP)
}

impl Mapped {
    fn used(&self) -> u64 {
        self.pieces.iter().filter(|piece| piece.used).count() as u64 * STEP
    }

    fn reserved(&self) -> u64 {
        if self.is_exhausted {
            driver::config().memory / STEP * STEP
        } else {
            self.pieces.len() as u64 * STEP
        }
    }

    fn note_highs(&mut self) {
        self.used_high = self.used_high.max(self.used());
        self.reserved_high = self.reserved_high.max(self.reserved());
    }

    /// The pieces that nothing lives in and that work on its way does not have, those first that
    /// were in use.
    fn free_for(&mut self, next: &MappingUser) -> Vec<usize> {
        let pieces = self.pieces.iter_mut().enumerate();
        let mut free: Vec<_> = pieces
            .filter_map(|(index, piece)| piece.is_free_for(next).then_some((!piece.used, index)))
            .collect();
        free.sort_unstable();
        free.into_iter().map(|(_, index)| index).collect()
    }

    /// A piece for each step of addresses that is needed; false if the device has no room for them.
    fn map(&mut self, device: i32, needs: &Needs, user: &MappingUser) -> bool {
        let lives_at = |piece: &Piece, step: u64| piece.lives_at == Some(step);
        let there = |mapped: &Self, step: u64| mapped.pieces.iter().position(|piece| lives_at(piece, step));
        let wanted: Vec<u64> =
            needs.all.iter().copied().filter(|step| there(self, *step).is_none()).collect();
        let mut free = self.free_for(user);
        let missing = wanted.len().saturating_sub(free.len());
        if !try_reserve(device, (missing as u64).saturating_mul(STEP)) {
            return false;
        }
        free.extend(self.pieces.len()..self.pieces.len() + missing);
        self.pieces.resize_with(self.pieces.len() + missing, Piece::default);
        // What is in use at once gets what was in use before.
        let (first, then): (Vec<u64>, Vec<u64>) =
            wanted.into_iter().partition(|step| needs.at_once.contains(step));
        let given: Vec<_> = first.into_iter().chain(then).zip(free).collect();
        let stayed = needs.all.iter().filter_map(|step| Some((*step, there(self, *step)?)));
        let all: Vec<_> = stayed.chain(given).collect();
        for (step, index) in all {
            let Some(piece) = self.pieces.get_mut(index) else { continue };
            piece.used |= needs.at_once.contains(&step);
            if needs.kept.contains(&step) {
                piece.lives_at = Some(step);
            }
            piece.users.push(user.clone());
        }
        self.note_highs();
        true
    }
}

fn with<R>(device: i32, act: impl FnOnce(&mut Mapped) -> R) -> R {
    act(lock(&MAPPED).entry(device).or_default())
}

/// A launch or an upload maps what it needs; false if the device has no room for it, and then it
/// has none for anything else from now on, as a GPU.
pub(crate) fn map(device: i32, needs: &Needs, user: &MappingUser) -> bool {
    with(device, |mapped| {
        let fits = mapped.map(device, needs, user);
        if !fits {
            accounting::exhaust(device);
            mapped.is_exhausted = true;
            mapped.note_highs();
        }
        fits
    })
}

/// Nothing lives any more in some steps of addresses, once the user is done.
pub(crate) fn end_lives(device: i32, ended: &BTreeSet<u64>, user: &MappingUser) {
    with(device, |mapped| {
        let of_it = |piece: &&mut Piece| piece.lives_at.is_some_and(|step| ended.contains(&step));
        for piece in mapped.pieces.iter_mut().filter(of_it) {
            piece.lives_at = None;
            piece.users.push(user.clone());
        }
    });
}

pub(crate) fn figures(device: i32) -> Figures {
    with(device, |mapped| Figures {
        used: mapped.used(),
        reserved: mapped.reserved(),
        used_high: mapped.used_high,
        reserved_high: mapped.reserved_high,
    })
}

pub(crate) fn reset_used_high(device: i32) {
    with(device, |mapped| mapped.used_high = mapped.used());
}

pub(crate) fn reset_reserved_high(device: i32) {
    with(device, |mapped| mapped.reserved_high = mapped.reserved());
}

/// Gives back to the device what nothing lives in and no work has; whether that was any.
pub(crate) fn trim(device: i32) -> bool {
    let gone = with(device, |mapped| {
        let before = mapped.pieces.len();
        mapped
            .pieces
            .retain(|piece| piece.lives_at.is_some() || !piece.users.iter().all(MappingUser::is_done));
        before - mapped.pieces.len()
    });
    release(device, gone as u64 * STEP);
    gone > 0
}
