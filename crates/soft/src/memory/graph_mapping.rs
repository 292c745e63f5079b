//! Device memory that graphs have mapped, in chunks.
//!
//! A graph owns its addresses, but not the memory behind them: a launch takes chunks that no other
//! launch uses at that time and in which nothing lives. The memory mapped by graphs shrinks only by
//! a trim, or when another allocation finds no memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::accounting::{self, release, try_reserve};
use super::range::STEP;
use crate::driver;
use crate::sync::lock;

/// Work that uses a chunk until it is done.
#[derive(Debug, Clone)]
pub(crate) struct MappingUser {
    /// The stream. Later work on the same stream may use the chunk, too.
    pub(crate) stream: u64,
    /// The executable, whose launches run one after the other on any streams; 0 for a free.
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

/// A chunk of device memory.
#[derive(Debug, Default)]
struct Piece {
    /// The address chunk that it is mapped to, as long as something lives there.
    lives_at: Option<u64>,
    users: Vec<MappingUser>,
    /// It was in use when most chunks of a launch were.
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
    /// A launch needed more than there was: all memory stays reserved for good.
    is_exhausted: bool,
}

/// The attributes that a device reports, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) used: u64,
    pub(crate) reserved: u64,
    pub(crate) used_high: u64,
    pub(crate) reserved_high: u64,
}

/// The address chunks of a device that a launch or an upload needs.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    pub(crate) all: BTreeSet<u64>,
    /// Those in use when most are.
    pub(crate) at_once: BTreeSet<u64>,
    /// Those in which something outlives the launch.
    pub(crate) kept: BTreeSet<u64>,
}

static MAPPED: Mutex<BTreeMap<i32, Mapped>> = Mutex::new(BTreeMap::new());

/// The numbers of the chunks that a range touches.
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

    /// The chunks that are free for work that comes next, those first that have been in use.
    fn free_for(&mut self, next: &MappingUser) -> Vec<usize> {
        let pieces = self.pieces.iter_mut().enumerate();
        let mut free: Vec<_> = pieces
            .filter_map(|(index, piece)| piece.is_free_for(next).then_some((!piece.used, index)))
            .collect();
        free.sort_unstable();
        free.into_iter().map(|(_, index)| index).collect()
    }

    /// Maps a chunk to each address chunk that is needed; false if the device has not enough
    /// memory.
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
        // What is in use at the same time gets the chunks that were in use before.
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

/// Maps what a launch or an upload needs; false if the device has not enough memory. As on a GPU,
/// it has none for anything else from then on.
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

/// Nothing lives in these address chunks any more once the user is done.
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

/// Unmaps the chunks that nothing lives in and no work uses; true if there were any.
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
