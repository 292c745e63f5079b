//! The driver of the process.

use core::ops::Deref;

use crate::{CUresult, Table, Version};

/// The loaded driver: its table of calls, its version and where it came from. There is one in a
/// process; see [`driver`](crate::driver).
///
/// Dereferences to its [`Table`], so a call reads `driver.cuInit(0)`.
#[derive(Debug)]
pub struct Driver {
    pub(crate) table: Table,
    pub(crate) version: Version,
    pub(crate) origin: String,
}

impl Driver {
    /// The version that `cuDriverGetVersion` reported when the driver was loaded.
    #[doc(alias = "cuDriverGetVersion")]
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where the driver came from: a file, or the name of an in-process driver.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The table of calls.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The driver's own sentence about a result code, where it has one.
    #[doc(alias = "cuGetErrorString")]
    #[must_use]
    pub fn describe(&self, result: CUresult) -> Option<&'static str> {
        let mut text = core::ptr::null();
        // SAFETY: the out pointer is valid; the driver writes null or a static string.
        let answer = unsafe { self.table.cuGetErrorString(result, &raw mut text) };
        if !answer.is_success() || text.is_null() {
            return None;
        }
        // SAFETY: the driver returns strings that live as long as it does, and it is never
        // unloaded.
        unsafe { core::ffi::CStr::from_ptr(text) }.to_str().ok()
    }
}

impl Deref for Driver {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}
