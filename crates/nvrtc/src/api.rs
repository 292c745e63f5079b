//! The entry points of NVRTC.

use core::error::Error;
use core::ffi::{CStr, c_char, c_int};
use std::path::Path;

use libloading::Library;

use crate::search;
use crate::version::Version;

#[repr(C)]
pub(crate) struct Opaque {
    _private: [u8; 0],
}

/// `nvrtcProgram`.
pub(crate) type Raw = *mut Opaque;

/// Returns the size of an output of a program.
pub(crate) type Size = unsafe extern "C" fn(Raw, *mut usize) -> c_int;
/// Writes an output to memory of that size.
pub(crate) type Fill = unsafe extern "C" fn(Raw, *mut c_char) -> c_int;

/// Declares the table and the look-up of each entry.
macro_rules! entries {
    ($($field:ident $name:literal: $type:ty;)*) => {
        /// The entry points, with the signatures of nvrtc.h, unchanged since NVRTC 12.0.
        pub(crate) struct Api {
            $(pub(crate) $field: $type,)*
        }

        impl Api {
            /// # Safety
            /// The library is NVRTC 11.2 or newer, and is never closed.
            unsafe fn look_up(library: &Library) -> Result<Self, String> {
                // SAFETY: each symbol has the type that nvrtc.h gives it.
                unsafe {
                    Ok(Self {
                        $($field: *library.get::<$type>($name).map_err(|error| lacks($name, &error))?,)*
                    })
                }
            }
        }
    };
}

entries! {
    version "nvrtcVersion": unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    error_string "nvrtcGetErrorString": unsafe extern "C" fn(c_int) -> *const c_char;
    count_archs "nvrtcGetNumSupportedArchs": unsafe extern "C" fn(*mut c_int) -> c_int;
    archs "nvrtcGetSupportedArchs": unsafe extern "C" fn(*mut c_int) -> c_int;
    create "nvrtcCreateProgram": unsafe extern "C" fn(
        *mut Raw, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
    ) -> c_int;
    destroy "nvrtcDestroyProgram": unsafe extern "C" fn(*mut Raw) -> c_int;
    compile "nvrtcCompileProgram": unsafe extern "C" fn(Raw, c_int, *const *const c_char) -> c_int;
    add_expression "nvrtcAddNameExpression": unsafe extern "C" fn(Raw, *const c_char) -> c_int;
    lowered_name "nvrtcGetLoweredName": unsafe extern "C" fn(Raw, *const c_char, *mut *const c_char) -> c_int;
    ptx_size "nvrtcGetPTXSize": Size;
    ptx "nvrtcGetPTX": Fill;
    cubin_size "nvrtcGetCUBINSize": Size;
    cubin "nvrtcGetCUBIN": Fill;
    log_size "nvrtcGetProgramLogSize": Size;
    log "nvrtcGetProgramLog": Fill;
}

fn lacks(name: &str, error: &libloading::Error) -> String {
    format!("it has no {name} ({})", reason(error))
}

/// The system's reason, which is the source of libloading's error.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// The oldest NVRTC that this crate is tested with.
const OLDEST: Version = Version::new(12, 0);

impl Api {
    /// Opens a library and checks its version.
    ///
    /// # Safety
    /// A library at that path is NVRTC, or opening it and calling its symbols of nvrtc.h is
    /// harmless.
    pub(crate) unsafe fn open(path: &Path) -> Result<(Self, Version), String> {
        // In the wheels of NVRTC 13 the loader does not find the second part beside the first. A
        // library that is already open is found by its name.
        for part in search::builtins(path) {
            // SAFETY: the caller's promise. If it does not open, the compiler reports that when it
            // needs it.
            core::mem::forget(unsafe { Library::new(part) });
        }
        // SAFETY: the caller's promise.
        let library = unsafe { Library::new(path) }.map_err(|error| reason(&error))?;
        // Never closed: its entries stay in use, and it runs threads of its own.
        let library = core::mem::ManuallyDrop::new(library);
        // SAFETY: as above; the signatures are those of all versions since 11.2.
        let api = unsafe { Self::look_up(&library) }?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both out pointers are valid.
        let code = unsafe { (api.version)(&raw mut major, &raw mut minor) };
        if code != 0 {
            return Err(format!("nvrtcVersion answered {}", api.words(code)));
        }
        let version = Version::new(major.unsigned_abs(), minor.unsigned_abs());
        if version < OLDEST {
            return Err(format!("it is version {version}; {OLDEST} or newer is needed"));
        }
        Ok((api, version))
    }

    /// The compiler's description of a result code.
    pub(crate) fn words(&self, code: c_int) -> String {
        // SAFETY: the call takes any code.
        let text = unsafe { (self.error_string)(code) };
        if text.is_null() {
            return code.to_string();
        }
        // SAFETY: the compiler returns a C string that is never freed.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}
