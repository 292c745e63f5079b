//! The answers that the model foresees.

use cuda_graph::{Error, ExecError, Result};
use cuda_handles::Error as HandleError;
use cuda_sys::Call;

/// An error that the model foresees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Isolated,
    Merge,
    CapturedEvent,
    /// The call cannot be captured.
    Capturing,
    /// A launch of an executable cannot be captured.
    Captured,
    Unjoined,
    Discarded,
    /// The end of an invalid capture.
    Invalidated,
    /// The model does not know which.
    Any,
}

impl Fault {
    fn is(self, error: &Error) -> bool {
        match error {
            Error::Handles(HandleError::Isolated) => matches!(self, Self::Isolated | Self::Any),
            Error::Handles(HandleError::Merge) => matches!(self, Self::Merge | Self::Any),
            Error::Handles(HandleError::CapturedEvent) => matches!(self, Self::CapturedEvent | Self::Any),
            Error::Handles(HandleError::Capturing { .. }) => matches!(self, Self::Capturing | Self::Any),
            Error::Handles(HandleError::CaptureUnjoined { .. }) => self == Self::Unjoined,
            Error::Handles(HandleError::Discarded) => self == Self::Discarded,
            Error::Handles(HandleError::CaptureInvalidated { .. }) => self == Self::Invalidated,
            Error::Exec(ExecError::Captured) => self == Self::Captured,
            _ => self == Self::Any,
        }
    }
}

/// What came of a call, if it was done. `hit` is the driver call that failed on demand.
#[track_caller]
pub(super) fn judged<T>(outcome: Result<T>, fault: Option<Fault>, hit: Option<Call>) -> Option<T> {
    match (outcome, fault) {
        (Ok(done), None) => Some(done),
        (Ok(_), Some(fault)) => panic!("done in spite of {fault:?}"),
        (Err(_), _) if hit.is_some() => None,
        (Err(error), Some(fault)) if fault.is(&error) => None,
        (Err(error), fault) => panic!("{error:?}, expected: {fault:?}"),
    }
}
