//! Names of result codes.

use core::fmt;

use crate::CUresult;
use crate::generated::calls::RESULT_NAMES;

impl CUresult {
    /// Whether the call succeeded.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::CUDA_SUCCESS
    }

    /// The code's name in the header, such as `CUDA_ERROR_INVALID_VALUE`; `None` for a code of a
    /// newer driver.
    #[doc(alias = "cuGetErrorName")]
    #[doc(alias = "cudaGetErrorName")]
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        RESULT_NAMES.iter().find(|(code, _)| *code == self).map(|(_, name)| *name)
    }

    /// The code with this name in the header.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        RESULT_NAMES.iter().find(|(_, known)| *known == name).map(|(code, _)| *code)
    }

    /// All codes in the headers, with their names.
    #[must_use]
    pub fn all() -> &'static [(Self, &'static str)] {
        RESULT_NAMES
    }
}

impl fmt::Display for CUresult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(formatter, "{name} ({})", self.0),
            None => write!(formatter, "result code {}, which this build does not know", self.0),
        }
    }
}
