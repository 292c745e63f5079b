//! Link calls.

use core::ffi::{CStr, c_char, c_uint, c_void};
use std::sync::{Mutex, MutexGuard};

use cuda_sys::{CUjit_option, CUjitInputType, CUlinkState};

use super::module::read_file;
use super::table::Entries;
use crate::abi::jit_options::Logs;
use crate::device::context::current;
use crate::driver::handle::{Kind, Slots, number, to_raw};
use crate::driver::pointer::{put, put_if, required, slice};
use crate::driver::result_code::{Answer, INVALID_HANDLE, INVALID_IMAGE, INVALID_VALUE};
use crate::module::image::{self, RejectedImage};
use crate::sync::lock;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries { cuLinkCreate, cuLinkAddData, cuLinkAddFile, cuLinkComplete, cuLinkDestroy, ..entries }
}

/// A pending link.
struct Link {
    logs: Logs,
    texts: Vec<String>,
    /// The result with its terminator.
    linked: Option<Box<[u8]>>,
}

static LINKS: Mutex<Slots<Link>> = Mutex::new(Slots::new(Kind::Link));

fn links() -> MutexGuard<'static, Slots<Link>> {
    lock(&LINKS)
}

/// The number of pending links.
pub(crate) fn count() -> usize {
    links().len()
}

/// Writes the logs; returns the code of a rejection.
///
/// # Safety
/// The buffers of the logs are there.
unsafe fn report<T>(logs: &Logs, result: Result<T, RejectedImage>) -> Answer<T> {
    let log = result.as_ref().err().map_or("", |refusal| refusal.log.as_str());
    // SAFETY: the caller's promise.
    unsafe {
        logs.error.write(log);
        logs.info.write("");
    }
    result.map_err(|refusal| refusal.code)
}

/// # Safety
/// The buffers of the link's logs are there.
unsafe fn add_input(state: CUlinkState, kind: CUjitInputType, bytes: &[u8]) -> Answer {
    let mut links = links();
    let link = links.get_mut(number(state)).ok_or(INVALID_HANDLE)?;
    match kind {
        CUjitInputType::CU_JIT_INPUT_PTX => {}
        CUjitInputType(0..=5) => {
            let log = "the software driver links PTX texts alone".to_owned();
            // SAFETY: the caller's promise.
            return unsafe { report(&link.logs, Err(RejectedImage { code: INVALID_IMAGE, log })) };
        }
        _ => return Err(INVALID_VALUE),
    }
    let text = CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes);
    // SAFETY: the caller's promise.
    let text = unsafe { report(&link.logs, image::check_part(text))? }.to_owned();
    link.texts.push(text);
    Ok(())
}

entries! {
    live fn cuLinkCreate(count: c_uint, options: *mut CUjit_option, values: *mut *mut c_void, out: *mut CUlinkState) {
        required(out)?;
        current()?;
        let logs = Logs::read(options, values, count)?.without_sizes();
        put(out, to_raw(links().insert(Link { logs, texts: Vec::new(), linked: None })))
    }

    live fn cuLinkAddData(
        state: CUlinkState,
        kind: CUjitInputType,
        data: *mut c_void,
        size: usize,
        name: *const c_char,
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    ) {
        let _ = name;
        required(data)?;
        if size == 0 {
            return Err(INVALID_VALUE);
        }
        Logs::read(options, values, count)?;
        add_input(state, kind, slice(data.cast::<u8>(), size)?)
    }

    live fn cuLinkAddFile(
        state: CUlinkState,
        kind: CUjitInputType,
        path: *const c_char,
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    ) {
        Logs::read(options, values, count)?;
        add_input(state, kind, &read_file(path)?)
    }

    live fn cuLinkComplete(state: CUlinkState, cubin_out: *mut *mut c_void, size_out: *mut usize) {
        required(cubin_out)?;
        let mut links = links();
        let link = links.get_mut(number(state)).ok_or(INVALID_HANDLE)?;
        let linked = match link.linked.take() {
            Some(linked) => linked,
            None => {
                let mut text = report(&link.logs, image::link(&link.texts))?;
                text.push('\0');
                text.into_bytes().into_boxed_slice()
            }
        };
        let linked = link.linked.insert(linked);
        put(cubin_out, linked.as_mut_ptr().cast())?;
        put_if(size_out, linked.len());
        Ok(())
    }

    live_in_callbacks fn cuLinkDestroy(state: CUlinkState) {
        links().remove(number(state)).map(drop).ok_or(INVALID_HANDLE)
    }
}
