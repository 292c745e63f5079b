//! The cause of a lost context.

use core::fmt;

use cuda_sys::{CUresult, Call};

use super::advice::sentence;

/// A driver call and its answer: the reason why a context was lost.
#[doc(alias = "cudaGetLastError")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cause {
    /// The call that reported it first. The fault itself may lie in earlier work.
    pub call: Call,
    /// The driver's answer.
    pub code: CUresult,
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} answered {}", self.call.name(), self.code)?;
        if let Some(sentence) = sentence(self.code) {
            write!(formatter, ": {sentence}")?;
        }
        Ok(())
    }
}
