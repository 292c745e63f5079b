//! Settings of core dumps. This driver writes none, but it keeps the settings of the process.

use core::ffi::c_void;
use std::sync::Mutex;

use cuda_sys::CUcoredumpSettings;

use super::table::Entries;
use crate::driver::pointer::{given_mut, required, slice};
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::sync::lock;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries { cuCoredumpGetAttributeGlobal, cuCoredumpSetAttributeGlobal, ..entries }
}

/// The longest name of a file or a pipe, without the zero behind it.
const LONGEST_NAME: usize = 1023;

struct Settings {
    on_exception: bool,
    host_too: bool,
    lightweight: bool,
    user_trigger: bool,
    file: Vec<u8>,
    pipe: Vec<u8>,
    flags: u32,
}

static SETTINGS: Mutex<Settings> = Mutex::new(Settings {
    on_exception: false,
    host_too: true,
    lightweight: false,
    user_trigger: false,
    file: Vec::new(),
    pipe: Vec::new(),
    flags: 0,
});

/// The place of a setting.
enum Setting<'a> {
    Switch(&'a mut bool),
    Name(&'a mut Vec<u8>),
    Flags(&'a mut u32),
}

impl Settings {
    fn place(&mut self, setting: CUcoredumpSettings) -> Answer<Setting<'_>> {
        use CUcoredumpSettings as Known;
        Ok(match setting {
            Known::CU_COREDUMP_ENABLE_ON_EXCEPTION => Setting::Switch(&mut self.on_exception),
            Known::CU_COREDUMP_TRIGGER_HOST => Setting::Switch(&mut self.host_too),
            Known::CU_COREDUMP_LIGHTWEIGHT => Setting::Switch(&mut self.lightweight),
            Known::CU_COREDUMP_ENABLE_USER_TRIGGER => Setting::Switch(&mut self.user_trigger),
            Known::CU_COREDUMP_FILE => Setting::Name(&mut self.file),
            Known::CU_COREDUMP_PIPE => Setting::Name(&mut self.pipe),
            Known::CU_COREDUMP_GENERATION_FLAGS => Setting::Flags(&mut self.flags),
            _ => return Err(INVALID_VALUE),
        })
    }
}

entries! {
    init fn cuCoredumpGetAttributeGlobal(
        get: CUcoredumpSettings,
        value: *mut c_void,
        size: *mut usize,
    ) {
        required(value)?;
        let size = given_mut(size)?;
        match lock(&SETTINGS).place(get)? {
            Setting::Switch(switch) => copy_out(&[u8::from(*switch)], value, size),
            Setting::Flags(flags) => copy_out(&flags.to_ne_bytes(), value, size),
            Setting::Name(name) => copy_out(&[name.as_slice(), &[0]].concat(), value, size),
        }
    }

    init fn cuCoredumpSetAttributeGlobal(
        set: CUcoredumpSettings,
        value: *mut c_void,
        size: *mut usize,
    ) {
        required(value)?;
        let size = *given_mut(size)?;
        match lock(&SETTINGS).place(set)? {
            Setting::Switch(switch) => {
                let given: [u8; 1] = copy_in(value, size)?;
                *switch = given != [0];
            }
            Setting::Flags(flags) => *flags = u32::from_ne_bytes(copy_in(value, size)?),
            Setting::Name(name) => *name = name_in(value, size)?,
        }
        Ok(())
    }
}

/// Writes a value, and its length over the size of its place.
///
/// # Safety
/// `place` is valid for writes of `size` bytes.
unsafe fn copy_out(value: &[u8], place: *mut c_void, size: &mut usize) -> Answer {
    if *size < value.len() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the place has room for the value.
    unsafe { place.cast::<u8>().copy_from_nonoverlapping(value.as_ptr(), value.len()) };
    *size = value.len();
    Ok(())
}

/// Reads a value of a fixed size.
///
/// # Safety
/// `place` is valid for reads of `size` bytes.
unsafe fn copy_in<const N: usize>(place: *const c_void, size: usize) -> Answer<[u8; N]> {
    if size < N {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the place has that many bytes.
    unsafe { slice(place.cast::<u8>(), N) }?.try_into().map_err(|_| INVALID_VALUE)
}

/// Reads a name: up to the first zero, or all of it.
///
/// # Safety
/// `place` is valid for reads of `size` bytes.
unsafe fn name_in(place: *const c_void, size: usize) -> Answer<Vec<u8>> {
    // SAFETY: the caller's promise; no name is longer.
    let bytes = unsafe { slice(place.cast::<u8>(), size.min(LONGEST_NAME + 1)) }?;
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    if name.len() > LONGEST_NAME { Err(INVALID_VALUE) } else { Ok(name.to_vec()) }
}
