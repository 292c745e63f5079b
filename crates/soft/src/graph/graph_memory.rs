//! How much of each device graphs have mapped. It rises with launches and uploads and falls by a trim alone.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What graphs have mapped of a device.
#[derive(Debug, Default)]
struct Mapped {
    /// Lengths by address.
    ranges: BTreeMap<u64, u64>,
    /// Their sum.
    total: u64,
    used_high: u64,
    reserved_high: u64,
}

/// The figures that a device tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    /// What is used is what is reserved: neither falls by a free.
    pub(crate) current: u64,
    pub(crate) used_high: u64,
    pub(crate) reserved_high: u64,
}

static MAPPED: Mutex<BTreeMap<i32, Mapped>> = Mutex::new(BTreeMap::new());

/// The steps in which it grows.
const STEP: u64 = 32 << 20;

impl Mapped {
    fn current(&self) -> u64 {
        self.total.next_multiple_of(STEP)
    }

    fn add(&mut self, start: u64, len: u64) {
        self.total += len;
        self.total -= self.ranges.insert(start, len).unwrap_or(0);
        self.used_high = self.used_high.max(self.current());
        self.reserved_high = self.reserved_high.max(self.current());
    }

    fn remove(&mut self, start: u64) {
        self.total -= self.ranges.remove(&start).unwrap_or(0);
    }
}

fn with<R>(device: i32, act: impl FnOnce(&mut Mapped) -> R) -> R {
    act(MAPPED.lock().unwrap_or_else(PoisonError::into_inner).entry(device).or_default())
}

/// A launch or an upload maps the memory of its allocation nodes.
pub(crate) fn map(device: i32, start: u64, len: u64) {
    with(device, |mapped| mapped.add(start, len));
}

pub(crate) fn figures(device: i32) -> Figures {
    with(device, |mapped| Figures {
        current: mapped.current(),
        used_high: mapped.used_high,
        reserved_high: mapped.reserved_high,
    })
}

pub(crate) fn reset_used_high(device: i32) {
    with(device, |mapped| mapped.used_high = mapped.current());
}

pub(crate) fn reset_reserved_high(device: i32) {
    with(device, |mapped| mapped.reserved_high = mapped.current());
}

/// Unmaps what does not live.
pub(crate) fn trim(device: i32, is_living: impl Fn(u64) -> bool) {
    let starts: Vec<u64> = with(device, |mapped| mapped.ranges.keys().copied().collect());
    // Whether memory lives is asked without the lock, which a launch takes while it holds that of the lives.
    let dead: Vec<u64> = starts.into_iter().filter(|start| !is_living(*start)).collect();
    with(device, |mapped| dead.iter().for_each(|start| mapped.remove(*start)));
}
