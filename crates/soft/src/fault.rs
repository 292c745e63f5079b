//! The loss of the context: one code that everything answers from then on, and the sentence that says why.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use cuda_sys::CUresult;

use crate::code::Answer;

/// Why the context was lost.
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

static CODE: AtomicU32 = AtomicU32::new(0);
static SENTENCE: Mutex<Option<String>> = Mutex::new(None);

/// The context is lost; the first loss stays.
pub(crate) fn set(loss: Loss) {
    let mut sentence = SENTENCE.lock().unwrap_or_else(PoisonError::into_inner);
    if CODE.load(Ordering::Acquire) == 0 {
        *sentence = Some(loss.sentence);
        CODE.store(loss.code.0, Ordering::Release);
    }
}

pub(crate) fn is_set() -> bool {
    CODE.load(Ordering::Acquire) != 0
}

/// The code of the loss as an error.
pub(crate) fn check() -> Answer {
    match CODE.load(Ordering::Acquire) {
        0 => Ok(()),
        code => Err(CUresult(code)),
    }
}

pub(crate) fn sentence() -> Option<String> {
    SENTENCE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Ends the process where the real driver would take it down: no library may ever get here.
pub(crate) fn crash(what: &str) -> ! {
    eprintln!("cuda-soft: the real driver crashes here: {what}");
    std::process::abort()
}

/// Ends the process where the real driver never returns.
pub(crate) fn hang(what: &str) -> ! {
    eprintln!("cuda-soft: the real driver hangs here: {what}");
    std::process::abort()
}
