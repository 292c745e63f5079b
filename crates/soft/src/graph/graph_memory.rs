//! How much of each device graphs have mapped. It rises with launches and uploads and falls by a trim alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use crate::driver;
use crate::memory::{self, STEP};

/// What graphs have mapped of a device, in steps, by their numbers.
#[derive(Debug, Default)]
struct Mapped {
    reserved: BTreeSet<u64>,
    /// Those that are in use at the moment of a launch in which most are.
    used: BTreeSet<u64>,
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

static MAPPED: Mutex<BTreeMap<i32, Mapped>> = Mutex::new(BTreeMap::new());

/// The numbers of the steps in which a range lies.
pub(crate) fn steps(start: u64, len: u64) -> impl Iterator<Item = u64> {
    start / STEP..(start + len).div_ceil(STEP)
}

impl Mapped {
    fn used(&self) -> u64 {
        self.used.len() as u64 * STEP
    }

    fn reserved(&self) -> u64 {
        if self.is_exhausted {
            driver::config().memory / STEP * STEP
        } else {
            self.reserved.len() as u64 * STEP
        }
    }

    fn note_highs(&mut self) {
        self.used_high = self.used_high.max(self.used());
        self.reserved_high = self.reserved_high.max(self.reserved());
    }
}

fn with<R>(device: i32, act: impl FnOnce(&mut Mapped) -> R) -> R {
    act(MAPPED.lock().unwrap_or_else(PoisonError::into_inner).entry(device).or_default())
}

/// A launch or an upload maps the steps that its memory lies in, of which some are used at once.
pub(crate) fn map(device: i32, all: impl IntoIterator<Item = u64>, at_once: impl IntoIterator<Item = u64>) {
    with(device, |mapped| {
        mapped.reserved.extend(all);
        mapped.used.extend(at_once);
        mapped.note_highs();
    });
}

/// A launch finds less memory than it needs. As on a GPU, the device has none for anything else from now on.
pub(crate) fn exhaust(device: i32) {
    memory::exhaust(device);
    with(device, |mapped| {
        mapped.is_exhausted = true;
        mapped.note_highs();
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

/// Unmaps the steps in which nothing lives.
pub(crate) fn trim(device: i32, living: impl IntoIterator<Item = (u64, u64)>) {
    let kept: BTreeSet<u64> = living.into_iter().flat_map(|(start, len)| steps(start, len)).collect();
    with(device, |mapped| {
        mapped.reserved.retain(|step| kept.contains(step));
        mapped.used.retain(|step| kept.contains(step));
    });
}
