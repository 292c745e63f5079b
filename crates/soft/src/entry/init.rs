//! Initialisation, look-up of calls, and error texts.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

use std::ffi::CString;
use std::sync::OnceLock;

use cuda_sys::{CUdriverProcAddressQueryResult as Query, CUresult, Version, cuuint64_t};

use super::{ENTRIES, Entries, Found, old, sentences};
use crate::code::{Answer, INVALID_VALUE, NOT_FOUND, NOT_SUPPORTED};
use crate::driver;
use crate::gate::{put, put_if, required};

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
        cuInit,
        cuDriverGetVersion,
        cuGetProcAddress,
        cuGetErrorName,
        cuGetErrorString,
        cuGetExportTable,
        ..entries
    }
}

/// The flag for per-thread default streams; the flag before it is for legacy ones, which are the
/// default.
const LAST_FLAG: cuuint64_t = 2;

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

    always fn cuGetProcAddress(
        symbol: *const c_char,
        pfn: *mut *mut c_void,
        driver_version: c_int,
        flags: cuuint64_t,
        symbol_found: *mut Query,
    ) {
        required(symbol)?;
        required(pfn)?;
        if flags > LAST_FLAG || driver_version > driver::version().as_raw() {
            return Err(INVALID_VALUE);
        }
        let asked = Version::from_raw(driver_version);
        let symbol = CStr::from_ptr(symbol);
        let found = match ENTRIES.find(symbol, asked, driver::version()) {
            Found::NoSuchCall => old::find(symbol, asked),
            // No layout of today is so old; another one may be.
            Found::NotInThatVersion => match old::find(symbol, asked) {
                Found::NoSuchCall => Found::NotInThatVersion,
                found => found,
            },
            found @ Found::Entry(_) => found,
        };
        let (pointer, query) = match found {
            Found::Entry(pointer) => (pointer, Query::CU_GET_PROC_ADDRESS_SUCCESS),
            Found::NoSuchCall => (core::ptr::null_mut(), Query::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
            Found::NotInThatVersion => (core::ptr::null_mut(), Query::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
        };
        pfn.write_unaligned(pointer);
        put_if(symbol_found, query);
        if pointer.is_null() && symbol_found.is_null() { Err(NOT_FOUND) } else { Ok(()) }
    }

    always fn cuGetErrorName(error: CUresult, p_str: *mut *const c_char) {
        text(error, p_str, |texts| &texts.0)
    }

    always fn cuGetErrorString(error: CUresult, p_str: *mut *const c_char) {
        text(error, p_str, |texts| &texts.1)
    }

    init fn cuGetExportTable(table: *mut *const c_void, id: *const cuda_sys::CUuuid) {
        let _ = (table, id);
        Err(NOT_SUPPORTED)
    }
}

type Texts = (CString, CString);

/// Each code's name and sentence as C strings, made once.
fn texts() -> &'static [(CUresult, Texts)] {
    static TEXTS: OnceLock<Vec<(CUresult, Texts)>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let text = |(code, name): &(CUresult, &str)| {
            let sentence = sentences::of(*code, name);
            (*code, (CString::new(*name).unwrap_or_default(), CString::new(sentence).unwrap_or_default()))
        };
        CUresult::all().iter().map(text).collect()
    })
}

/// # Safety
/// `out` is null or valid for a write.
unsafe fn text(
    error: CUresult,
    out: *mut *const c_char,
    which: impl Fn(&'static Texts) -> &'static CString,
) -> Answer {
    let known = texts().iter().find(|(code, _)| *code == error);
    let pointer = known.map_or(core::ptr::null(), |(_, texts)| which(texts).as_ptr());
    // SAFETY: the caller's promise.
    unsafe { put(out, pointer)? };
    if pointer.is_null() { Err(INVALID_VALUE) } else { Ok(()) }
}
