//! The loss of a device: the code that its calls return from then on, and the reason.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use cuda_sys::CUresult;

use crate::device::context;
use crate::driver::result_code::{Answer, CONTEXT_IS_DESTROYED};
use crate::driver::{self, explain};
use crate::sync::lock;

/// Why a device was lost.
#[derive(Debug, Clone)]
pub(crate) struct Loss {
    pub(crate) code: CUresult,
    pub(crate) sentence: String,
}

impl Loss {
    pub(crate) fn new(code: CUresult, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into() }
    }
}

/// How many devices are lost; while it is 0, no lock is taken.
static LOST: AtomicU32 = AtomicU32::new(0);
/// The losses in order, at most one for each device.
static LOSSES: Mutex<Vec<(i32, Loss)>> = Mutex::new(Vec::new());

fn losses() -> MutexGuard<'static, Vec<(i32, Loss)>> {
    lock(&LOSSES)
}

/// Marks the device as lost. Later losses are ignored.
pub(crate) fn set(device: i32, loss: Loss) {
    let mut losses = losses();
    if losses.iter().all(|(lost, _)| *lost != device) {
        explain::loss(device, loss.code, &loss.sentence);
        losses.push((device, loss));
        LOST.fetch_add(1, Ordering::Release);
    }
}

/// Fails if the current context ended on a lost device.
fn check_current_context() -> Answer {
    if context::is_current_ended_lost() { Err(CONTEXT_IS_DESTROYED) } else { Ok(()) }
}

fn any() -> bool {
    LOST.load(Ordering::Acquire) != 0
}

pub(crate) fn is_lost(device: i32) -> bool {
    check_device(device).is_err()
}

/// Fails with the code of the loss if the device is lost.
pub(crate) fn check_device(device: i32) -> Answer {
    if !any() {
        return Ok(());
    }
    match losses().iter().find(|(lost, _)| *lost == device) {
        Some((_, loss)) => Err(loss.code),
        None => Ok(()),
    }
}

/// Fails with the code of the first loss if all devices are lost. A current context that ended
/// since has a code of its own.
pub(crate) fn check_all() -> Answer {
    if !any() {
        return Ok(());
    }
    check_current_context()?;
    if LOST.load(Ordering::Acquire) < driver::config().devices {
        return Ok(());
    }
    losses().first().map_or(Ok(()), |(_, loss)| Err(loss.code))
}

/// Fails if the device of the current context is lost; without a context, as [`check_all`].
pub(crate) fn check() -> Answer {
    if !any() {
        return Ok(());
    }
    check_current_context()?;
    context::current_device().map_or_else(check_all, check_device)
}

/// Why the device was lost; without a device, the first loss.
pub(crate) fn sentence(device: Option<i32>) -> Option<String> {
    let losses = losses();
    let found = losses.iter().find(|(lost, _)| device.is_none_or(|device| device == *lost));
    found.map(|(_, loss)| loss.sentence.clone())
}
