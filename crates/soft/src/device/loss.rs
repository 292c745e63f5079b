//! The loss of a device: the code that its calls return from then on, and the reason.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use cuda_sys::CUresult;

use crate::device::context;
use crate::driver;
use crate::driver::result_code::Answer;
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

/// Reports the loss if the environment asks for that. Programs that open the driver by its path
/// have no other way to learn the reason.
fn explain(device: i32, loss: &Loss) {
    if std::env::var_os("CUDA_SOFT_EXPLAIN").is_some_and(|value| !value.is_empty() && value != "0") {
        driver::say(&format!("device {device} is lost with {}: {}", loss.code, loss.sentence));
    }
}

/// Marks the device as lost. Later losses are ignored.
pub(crate) fn set(device: i32, loss: Loss) {
    let mut losses = losses();
    if losses.iter().all(|(lost, _)| *lost != device) {
        explain(device, &loss);
        losses.push((device, loss));
        LOST.fetch_add(1, Ordering::Release);
    }
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

/// Fails with the code of the first loss if all devices are lost.
pub(crate) fn check_all() -> Answer {
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
    context::current_device().map_or_else(check_all, check_device)
}

/// Why the device was lost; without a device, the first loss.
pub(crate) fn sentence(device: Option<i32>) -> Option<String> {
    let losses = losses();
    let found = losses.iter().find(|(lost, _)| device.is_none_or(|device| device == *lost));
    found.map(|(_, loss)| loss.sentence.clone())
}
