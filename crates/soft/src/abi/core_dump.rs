//! Settings of core dumps. This driver writes none, but it keeps the settings of the process.

use core::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

use cuda_sys::CUcoredumpSettings;

use super::table::Entries;
use crate::driver::pointer::{given_mut, slice};
use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::sync::lock;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries { cuCoredumpGetAttributeGlobal, cuCoredumpSetAttributeGlobal, ..entries }
}

/// The bytes of a name of a file or a pipe, with a zero behind it.
const NAME_BYTES: usize = 1024;
/// What a light core leaves out: the flags of driver 580.
const LIGHT: u32 = 0x2f;

struct Settings {
    on_exception: u8,
    host_too: u8,
    lightweight: u8,
    user_trigger: u8,
    file: Vec<u8>,
    pipe: Vec<u8>,
    flags: u32,
}

static SETTINGS: Mutex<Settings> = Mutex::new(Settings {
    on_exception: 0,
    host_too: 1,
    lightweight: 0,
    user_trigger: 0,
    file: Vec::new(),
    pipe: Vec::new(),
    flags: 0,
});

/// The place of a setting.
enum Setting<'a> {
    Switch(&'a mut u8),
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
        let size = given_mut(size)?;
        match lock(&SETTINGS).place(get)? {
            Setting::Switch(switch) => copy_out(&[*switch], value, size),
            Setting::Flags(flags) => copy_out(&flags.to_ne_bytes(), value, size),
            Setting::Name(name) => name_out(name, value, size),
        }
    }

    init fn cuCoredumpSetAttributeGlobal(
        set: CUcoredumpSettings,
        value: *mut c_void,
        size: *mut usize,
    ) {
        let size = *given_mut(size)?;
        let mut settings = lock(&SETTINGS);
        let place = settings.place(set)?;
        if set == CUcoredumpSettings::CU_COREDUMP_PIPE {
            return Err(NOT_SUPPORTED);
        }
        if value.is_null() {
            return Ok(());
        }
        match place {
            Setting::Switch(switch) => {
                let [given]: [u8; 1] = copy_in(value, size)?;
                let is_light = set == CUcoredumpSettings::CU_COREDUMP_LIGHTWEIGHT;
                let is_whole = is_light || set == CUcoredumpSettings::CU_COREDUMP_TRIGGER_HOST;
                *switch = if is_whole { given.min(1) } else { given };
                if is_light {
                    settings.flags = if given == 0 { settings.flags & !LIGHT } else { settings.flags | LIGHT };
                }
            }
            Setting::Flags(flags) => *flags = u32::from_ne_bytes(copy_in(value, size)?),
            Setting::Name(name) => *name = name_in(value, size)?,
        }
        Ok(())
    }
}

/// Writes a value of exactly that size. Without a place for the value, writes its size alone.
///
/// # Safety
/// `place` is null or valid for writes of `size` bytes.
unsafe fn copy_out(value: &[u8], place: *mut c_void, size: &mut usize) -> Answer {
    if place.is_null() {
        *size = value.len();
    } else if *size == value.len() {
        // SAFETY: the place has room for the value.
        unsafe { place.cast::<u8>().copy_from_nonoverlapping(value.as_ptr(), value.len()) };
    } else {
        return Err(INVALID_VALUE);
    }
    Ok(())
}

/// Writes a name and zeros behind it, up to 1024 bytes. A GPU's driver writes so many even where
/// the place has fewer.
///
/// # Safety
/// As [`copy_out`].
unsafe fn name_out(name: &[u8], place: *mut c_void, size: &mut usize) -> Answer {
    if place.is_null() {
        *size = NAME_BYTES;
        return Ok(());
    }
    if *size < name.len() {
        return Err(INVALID_VALUE);
    }
    let len = NAME_BYTES.min(*size);
    // SAFETY: the place has room for that many bytes.
    unsafe {
        place.cast::<u8>().write_bytes(0, len);
        place.cast::<u8>().copy_from_nonoverlapping(name.as_ptr(), name.len());
    }
    Ok(())
}

/// Reads a value of exactly that size.
///
/// # Safety
/// `place` is valid for reads of `size` bytes.
unsafe fn copy_in<const N: usize>(place: *const c_void, size: usize) -> Answer<[u8; N]> {
    if size != N {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the place has that many bytes.
    unsafe { slice(place.cast::<u8>(), N) }?.try_into().map_err(|_| INVALID_VALUE)
}

/// Reads a name up to its zero, also where its size is said to be less.
///
/// # Safety
/// `place` is valid for reads up to the first zero.
unsafe fn name_in(place: *const c_void, size: usize) -> Answer<Vec<u8>> {
    if size > NAME_BYTES {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(place.cast::<c_char>()) }.to_bytes();
    if name.len() < NAME_BYTES { Ok(name.to_vec()) } else { Err(INVALID_VALUE) }
}
