//! The driver of the process.

use core::ops::Deref;

use crate::{CUresult, Table, Version};

/// The loaded driver: its table of calls, its version and its origin. A process has one; see
/// [`driver`](crate::driver).
///
/// Dereferences to its [`Table`], so a call is written `driver.cuInit(0)`.
#[derive(Debug)]
pub struct Driver {
    pub(crate) table: Table,
    pub(crate) version: Version,
    pub(crate) origin: String,
}

impl Driver {
    /// The version that `cuDriverGetVersion` reported when the driver was loaded.
    #[doc(alias = "cuDriverGetVersion")]
    #[doc(alias = "cudaDriverGetVersion")]
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The origin of the driver: a file, or the name of an in-process driver.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The table of calls.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The driver's description of a result code, if it has one.
    #[doc(alias = "cuGetErrorString")]
    #[doc(alias = "cudaGetErrorString")]
    #[must_use]
    pub fn describe(&self, result: CUresult) -> Option<&'static str> {
        let mut text = core::ptr::null();
        // SAFETY: the out pointer is valid; the driver writes null or a static string.
        let answer = unsafe { self.table.cuGetErrorString(result, &raw mut text) };
        if !answer.is_success() || text.is_null() {
            return None;
        }
        // SAFETY: the strings live as long as the driver, which is never unloaded.
        unsafe { core::ffi::CStr::from_ptr(text) }.to_str().ok()
    }
}

impl Deref for Driver {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}
