//! Events that several processes have.

use core::ffi::c_char;

use cuda_sys::{CUevent, CUipcEventHandle};

use super::Entries;
use super::event::{DISABLE_TIMING, INTERPROCESS};
use crate::code::{INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE};
use crate::context::current;
use crate::event;
use crate::gate::{put, required};
use crate::handle::{number, to_raw};
use crate::records::Records;
use crate::share::{IDENTITY, Identity, Purpose, SharedFile};

pub(super) const fn add(entries: Entries) -> Entries {
    Entries { cuIpcGetEventHandle, cuIpcOpenEventHandle, ..entries }
}

entries! {
    live fn cuIpcGetEventHandle(out: *mut CUipcEventHandle, event: CUevent) {
        required(out)?;
        let event = event::get(number(event))?;
        let records = event.records.as_ref().filter(|_| event.flags & INTERPROCESS != 0).ok_or(INVALID_VALUE)?;
        let mut bytes = [0u8; 64];
        bytes[..IDENTITY].copy_from_slice(&records.file().identity().bytes());
        bytes[IDENTITY..][..4].copy_from_slice(&records.file().descriptor().to_le_bytes());
        put(out, CUipcEventHandle { reserved: bytes.map(|byte| byte as c_char) })
    }

    live fn cuIpcOpenEventHandle(out: *mut CUevent, handle: CUipcEventHandle) {
        required(out)?;
        let context = current()?;
        let bytes = handle.reserved.map(|byte| byte as u8);
        let identity = Identity::read(&bytes, Purpose::Event).ok_or(INVALID_VALUE)?;
        if identity.process() == std::process::id() {
            return Err(INVALID_CONTEXT);
        }
        let descriptor = i32::from_le_bytes([bytes[IDENTITY], bytes[IDENTITY + 1], bytes[IDENTITY + 2], bytes[IDENTITY + 3]]);
        let file = SharedFile::of_process(identity, descriptor, Purpose::Event).ok_or(INVALID_HANDLE)?;
        let records = Records::over(file).map_err(|_| INVALID_HANDLE)?;
        // What was opened is not handed on: its flags do not say that it can be.
        put(out, to_raw(event::create(context, DISABLE_TIMING, Some(records))))
    }
}
