//! An operation tried in a state, and what came of it.

use core::fmt;
use core::ptr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;

use cuda_handles::Error;
use cuda_sys::{CUcontext, CUstreamCaptureMode};

use super::Expected::{self, Lost, NotPermitted, Works};
use super::foreign::Foreign;
use super::{Refusal, Row, State, Things, Work, lose};
use crate::driver::raw::{driver, ok};
use crate::poll::SOON;
use crate::things::in_callback;

/// The outcome of an operation.
pub(super) enum Found {
    Works,
    Refused(Refusal),
    Panicked,
    Hung,
    /// It has harmed an object of other code.
    Broke(String),
}

impl Found {
    pub(super) fn is(&self, expected: Expected) -> bool {
        match (self, expected) {
            (Self::Works, Works) => true,
            // In whatever state.
            (Self::Refused(refusal), _) if refusal.is_for_what_is_lacking() => true,
            (Self::Refused(refusal), Lost) => refusal.lost,
            (Self::Refused(refusal), NotPermitted) => refusal.text.contains("CUDA_ERROR_NOT_PERMITTED"),
            _ => false,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Works => formatter.write_str("works"),
            Self::Refused(refusal) => formatter.write_str(&refusal.text),
            Self::Panicked => formatter.write_str("PANICS"),
            Self::Hung => formatter.write_str("HANGS"),
            Self::Broke(what) => write!(formatter, "BREAKS something: {what}"),
        }
    }
}

fn attempt(work: Work) -> Found {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => Found::Works,
        Ok(Err(refusal)) => Found::Refused(refusal),
        Err(_) => Found::Panicked,
    }
}

pub(super) fn one(state: State, things: &Arc<Things>, row: &Row, other: CUcontext) -> Found {
    let work = (row.prepare)(things);
    let found = match state {
        State::NoContext => with_context_set(ptr::null_mut(), work),
        State::OtherContext => with_context_set(other, work),
        State::CapturingHere => beside_a_capture_here(things, work),
        State::CapturingElsewhere => beside_a_capture_elsewhere(things, work),
        State::Callback => in_host_function(things, work),
        State::Lost => Found::Broke("a lost context is not for one row".to_owned()),
    };
    match still_good(things) {
        Ok(()) => found,
        Err(error) => Found::Broke(format!("afterwards: {error} (the operation itself: {found})")),
    }
}

/// The next use works.
fn still_good(things: &Things) -> Result<(), Error> {
    things.home.fill(&things.buffer, 0)?;
    things.home.synchronize_blocking()?;
    things.context.ensure_usable()
}

fn current() -> CUcontext {
    let mut current = ptr::null_mut();
    // SAFETY: the out pointer is valid.
    ok(unsafe { driver().cuCtxGetCurrent(&raw mut current) });
    current
}

/// Runs `work` on a thread of its own with this context current, or none.
fn with_context_set(context: CUcontext, work: Work) -> Found {
    let context = context.expose_provenance();
    let thread = std::thread::spawn(move || {
        let context = ptr::with_exposed_provenance_mut(context);
        // SAFETY: null, or a context that outlives the thread.
        ok(unsafe { driver().cuCtxSetCurrent(context) });
        let found = attempt(work);
        if current() == context {
            found
        } else {
            Found::Broke(format!("another context is current afterwards (the operation itself: {found})"))
        }
    });
    thread.join().unwrap_or(Found::Panicked)
}

fn with_capture(ended: Result<(), String>, found: Found) -> Found {
    match ended {
        Ok(()) => found,
        Err(what) => Found::Broke(format!("{what} (the operation itself: {found})")),
    }
}

fn beside_a_capture_here(things: &Things, work: Work) -> Found {
    let foreign = Foreign::new(&things.context);
    foreign.begin(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    let found = attempt(work);
    with_capture(foreign.end(), found)
}

fn beside_a_capture_elsewhere(things: &Things, work: Work) -> Found {
    let foreign = Foreign::new(&things.context);
    let ((begun, begins), (finish, finished)) = (channel::<()>(), channel::<()>());
    std::thread::scope(|scope| {
        let foreign = &foreign;
        let other = scope.spawn(move || {
            foreign.begin(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL);
            drop(begun);
            let _ = finished.recv();
            foreign.end()
        });
        let _ = begins.recv();
        let found = attempt(work);
        drop(finish);
        with_capture(other.join().unwrap_or_else(|_| Err("the capture could not begin".to_owned())), found)
    })
}

fn in_host_function(things: &Things, work: Work) -> Found {
    let (sender, receiver) = channel();
    in_callback(&things.other, move || {
        let _ = sender.send(attempt(work));
    });
    receiver.recv_timeout(SOON).unwrap_or(Found::Hung)
}

/// Prepares all rows, loses the context, and tries all rows.
pub(super) fn after_the_loss(things: &Arc<Things>, rows: &[Row]) -> Vec<Found> {
    let work: Vec<Work> = rows.iter().map(|row| (row.prepare)(things)).collect();
    lose(&things.context);
    work.into_iter().map(attempt).collect()
}
