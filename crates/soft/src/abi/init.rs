//! Initialisation and the driver's version.

use core::ffi::{c_int, c_uint, c_void};

use super::table::Entries;
use crate::driver::pointer::{given, put};
use crate::driver::result_code::{INVALID_VALUE, NOT_SUPPORTED};
use crate::driver::{self, explain};

pub(super) const fn add(entries: Entries) -> Entries {
    Entries { cuInit, cuDriverGetVersion, cuGetExportTable, ..entries }
}

entries! {
    always fn cuInit(flags: c_uint) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        driver::initialise()
    }

    always fn cuDriverGetVersion(driver_version: *mut c_int) {
        driver::check()?;
        put(driver_version, driver::version().as_raw())
    }

    init fn cuGetExportTable(table: *mut *const c_void, id: *const cuda_sys::CUuuid) {
        let _ = table;
        let id = given(id)?.bytes.map(|byte| format!("{byte:02x}")).concat();
        explain::because(|| format!("the table {id} is not documented, and the software driver has none"));
        Err(NOT_SUPPORTED)
    }
}
