//! All calls of the driver in one table, and `cuGetProcAddress`, which looks them up.

use core::ffi::{CStr, c_char, c_int, c_void};

use cuda_sys::{CUdriverProcAddressQueryResult as Query, CUresult, Version, cuuint64_t};

use super::old_layouts::Layouts;
use super::table::{Entries, Found};
use super::{
    array, batch, capture, context, copy, core_dump, device, error_text, event, graph, init, ipc, launch,
    link, managed, mem_op, memory, module, occupancy, old_layouts, peer, per_thread, pool, profiler,
    semaphore, stream, stream_attribute, tensor_map, texture,
};
use crate::driver::pointer::{put_if, required};
use crate::driver::result_code::{INVALID_VALUE, NOT_FOUND};
use crate::driver::{self, explain};

/// All calls. Those that no file adds return `CUDA_ERROR_NOT_SUPPORTED`.
pub(crate) static ENTRIES: Entries = {
    let entries = error_text::add(Entries { cuGetProcAddress, ..init::add(Entries::MISSING) });
    let entries = context::add(device::add(entries));
    let entries = managed::add(pool::add(memory::add(entries)));
    let entries = batch::add(peer::add(copy::add(entries)));
    let entries = stream_attribute::add(stream::add(entries));
    let entries = capture::add(ipc::add(event::add(entries)));
    let entries = tensor_map::add(link::add(module::add(entries)));
    let entries = occupancy::add(launch::add(entries));
    let entries = mem_op::add(semaphore::add(entries));
    let entries = texture::add(array::add(entries));
    core_dump::add(profiler::add(graph::add(entries)))
};

/// The calls in layouts older than the bindings.
const OLD_LAYOUTS: Layouts = old_layouts::layouts(cuGetProcAddress_v11030);

/// The flag for legacy default streams, the default.
const LEGACY: cuuint64_t = 1;
/// The flag for per-thread default streams, which counts if both are given.
const PER_THREAD: cuuint64_t = 2;

/// The call of that name in the newest layout that the requested version has.
pub(super) fn find_plain(symbol: &CStr, asked: Version) -> Found {
    match ENTRIES.find(symbol, asked, driver::version()) {
        Found::NoSuchCall => OLD_LAYOUTS.find(symbol, asked),
        // No current layout is that old, but an old one may be.
        Found::NotInThatVersion => match OLD_LAYOUTS.find(symbol, asked) {
            Found::NoSuchCall => Found::NotInThatVersion,
            found => found,
        },
        found @ Found::Entry(_) => found,
    }
}

entries! {
    always fn cuGetProcAddress(
        symbol: *const c_char,
        pfn: *mut *mut c_void,
        driver_version: c_int,
        flags: cuuint64_t,
        symbol_found: *mut Query,
    ) {
        required(symbol)?;
        required(pfn)?;
        let (asked, symbol) = (Version::from_raw(driver_version), CStr::from_ptr(symbol));
        explain::because(|| format!("{} of version {asked}, flags {flags}", symbol.to_string_lossy()));
        if flags & !(LEGACY | PER_THREAD) != 0 || driver_version > driver::version().as_raw() {
            return Err(INVALID_VALUE);
        }
        let found = if flags & PER_THREAD != 0 && per_thread::has_variant(symbol) {
            per_thread::find(symbol, asked).map_or(Found::NotInThatVersion, Found::Entry)
        } else {
            find_plain(symbol, asked)
        };
        let (pointer, query) = match found {
            Found::Entry(pointer) => (pointer, Query::CU_GET_PROC_ADDRESS_SUCCESS),
            Found::NoSuchCall => (core::ptr::null_mut(), Query::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
            Found::NotInThatVersion => (core::ptr::null_mut(), Query::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
        };
        if pointer.is_null() && !symbol_found.is_null() {
            explain::found_nothing(|| format!("{} of version {asked}, flags {flags}", symbol.to_string_lossy()));
        }
        pfn.write_unaligned(pointer);
        put_if(symbol_found, query);
        if pointer.is_null() && symbol_found.is_null() { Err(NOT_FOUND) } else { Ok(()) }
    }
}

/// The layout of CUDA 11.3, without the reason of a failed lookup.
///
/// # Safety
/// As [`cuGetProcAddress`].
#[allow(non_snake_case)]
unsafe extern "C" fn cuGetProcAddress_v11030(
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    driver_version: c_int,
    flags: cuuint64_t,
) -> CUresult {
    // SAFETY: the caller's promise.
    unsafe { cuGetProcAddress(symbol, pfn, driver_version, flags, core::ptr::null_mut()) }
}
