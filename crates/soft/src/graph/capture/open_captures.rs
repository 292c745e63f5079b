//! The open captures with their modes, and the calls that they forbid.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::{self, ThreadId};

use cuda_sys::CUstreamCaptureMode as Mode;

use crate::driver::result_code::{Answer, STREAM_CAPTURE_UNSUPPORTED};
use crate::sync::lock;

#[derive(Debug, Clone, Copy)]
struct OpenCapture {
    id: u64,
    mode: Mode,
    thread: ThreadId,
    valid: bool,
}

static OPEN_CAPTURES: Mutex<Vec<OpenCapture>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

const GLOBAL: Mode = Mode::CU_STREAM_CAPTURE_MODE_GLOBAL;
const RELAXED: Mode = Mode::CU_STREAM_CAPTURE_MODE_RELAXED;

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(GLOBAL) };
}

fn open() -> MutexGuard<'static, Vec<OpenCapture>> {
    lock(&OPEN_CAPTURES)
}

/// Sets the mode of this thread and returns the previous one.
pub(crate) fn exchange(mode: Mode) -> Mode {
    MODE.replace(mode)
}

/// Whether any capture is open.
pub(crate) fn any() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// Opens a capture on this thread.
pub(crate) fn begin(mode: Mode) -> u64 {
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    open().push(OpenCapture { id, mode, thread: thread::current().id(), valid: true });
    COUNT.fetch_add(1, Ordering::AcqRel);
    id
}

/// Closes a capture.
pub(crate) fn end(id: u64) {
    let mut open = open();
    let before = open.len();
    open.retain(|capture| capture.id != id);
    COUNT.fetch_sub(before - open.len(), Ordering::AcqRel);
}

/// Whether the capture is open and valid.
pub(crate) fn is_valid(id: u64) -> bool {
    open().iter().any(|capture| capture.id == id && capture.valid)
}

pub(crate) fn is_open(id: u64) -> bool {
    open().iter().any(|capture| capture.id == id)
}

/// Whether this thread may end the capture.
pub(crate) fn may_end(id: u64) -> bool {
    let me = thread::current().id();
    open().iter().any(|capture| capture.id == id && (capture.mode == RELAXED || capture.thread == me))
}

pub(crate) fn invalidate(id: u64) {
    for capture in open().iter_mut().filter(|capture| capture.id == id) {
        capture.valid = false;
    }
}

/// Invalidates all captures that `hit` selects; fails if there is one.
fn forbid(hit: impl Fn(&OpenCapture) -> bool) -> Answer {
    let mut any = false;
    for capture in open().iter_mut().filter(|capture| hit(capture)) {
        capture.valid = false;
        any = true;
    }
    if any { Err(STREAM_CAPTURE_UNSUPPORTED) } else { Ok(()) }
}

/// Refuses a potentially unsafe call, unless the thread or the captures are relaxed.
pub(crate) fn check_call() -> Answer {
    let mode = MODE.get();
    if !any() || mode == RELAXED {
        return Ok(());
    }
    let me = thread::current().id();
    forbid(|capture| match capture.mode {
        RELAXED => false,
        GLOBAL if mode == GLOBAL => true,
        _ => capture.thread == me,
    })
}

/// Refuses a call that no capture allows, whatever its mode.
pub(crate) fn check_synchronize() -> Answer {
    if any() { forbid(|_| true) } else { Ok(()) }
}
