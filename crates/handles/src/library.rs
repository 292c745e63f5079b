//! Libraries: loaded images with kernels in them.

use core::ffi::{CStr, c_char, c_void};
use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuda_sys::{CUjit_option, CUkernel, CUlib_st, CUlibrary, CUresult, Call};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::raw::{Raw, identity};
use crate::reaper::{self, Unused};

struct LibraryBox {
    raw: Raw<CUlib_st>,
    context: Context,
    /// Taken out by the drop alone.
    log: Option<Log>,
    /// The driver may compile when a kernel is first asked for, and writes to the log then: one at a time.
    compiling: Mutex<()>,
}

/// A loaded image. It stays loaded while a handle, a kernel or a graph holds it; [`reaper::drain`] unloads it afterwards.
#[derive(Clone)]
pub struct Library(Arc<LibraryBox>);

identity!(Library);

impl Library {
    /// Loads an image.
    ///
    /// Stands on `cuLibraryLoadData`, CUDA 12.0. The driver compiles PTX here or, with lazy loading, for the first kernel.
    ///
    /// # Errors
    /// The image is cut off or of no known kind; it does not compile or has no code for the device ([`Error::Jit`], with the compiler's log);
    /// or what the driver answers.
    #[doc(alias = "cuLibraryLoadData")]
    pub fn load(context: &Context, image: Image<'_>) -> Result<Self> {
        context.ensure_usable()?;
        let image = image.check()?;
        let log = Log::new();
        let mut raw = core::ptr::null_mut();
        // SAFETY: the image is whole, the options and the buffers they name live as long as the library, and the out pointer is valid.
        let code = unsafe {
            context.driver().cuLibraryLoadData(
                &raw mut raw,
                image.as_ptr(),
                (*log.parts()).options.as_mut_ptr(),
                (*log.parts()).values.as_mut_ptr(),
                OPTIONS as u32,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                0,
            )
        };
        compiled(context, Call::cuLibraryLoadData, code, &log)?;
        Ok(Self(Arc::new(LibraryBox {
            raw: Raw::new(raw),
            context: context.clone(),
            log: Some(log),
            compiling: Mutex::new(()),
        })))
    }

    /// The names of its kernels, in the driver's order.
    ///
    /// Stands on `cuLibraryGetKernelCount`, `cuLibraryEnumerateKernels`, CUDA 12.4, and `cuKernelGetName`, CUDA 12.3.
    ///
    /// # Errors
    /// The driver is older than 12.4, or what it answers.
    #[doc(alias = "cuLibraryEnumerateKernels")]
    #[doc(alias = "cuLibraryGetKernelCount")]
    pub fn kernel_names(&self) -> Result<Vec<String>> {
        self.raw_kernels()?.into_iter().map(|raw| kernel_name(self.context(), raw)).collect()
    }

    fn raw_kernels(&self) -> Result<Vec<CUkernel>> {
        let context = self.context();
        let _current = context.enter()?;
        let mut count = 0;
        // SAFETY: the library is loaded and the out pointer valid.
        let code = unsafe { context.driver().cuLibraryGetKernelCount(&raw mut count, self.as_raw()) }?;
        context.check(Call::cuLibraryGetKernelCount, code)?;
        let mut kernels = vec![core::ptr::null_mut(); count as usize];
        // SAFETY: the array has room for as many kernels.
        let code = unsafe {
            context.driver().cuLibraryEnumerateKernels(kernels.as_mut_ptr(), count, self.as_raw())
        }?;
        context.check(Call::cuLibraryEnumerateKernels, code)?;
        Ok(kernels)
    }

    /// The driver's own handle.
    #[must_use]
    pub fn as_raw(&self) -> CUlibrary {
        self.0.raw.get()
    }

    /// The context it was loaded for.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Keeps others from compiling while the log is in use.
    pub(crate) fn compile_alone(&self) -> MutexGuard<'_, ()> {
        self.0.compiling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result of a call that may compile.
    pub(crate) fn compiled(&self, call: Call, code: CUresult) -> Result<()> {
        match &self.0.log {
            Some(log) => compiled(self.context(), call, code, log),
            None => self.context().check(call, code),
        }
    }
}

impl Drop for LibraryBox {
    fn drop(&mut self) {
        // Where it is never unloaded, it is never used either: the driver writes to the log only when asked for a kernel.
        if !reaper::may_call(&self.context) {
            return;
        }
        reaper::push_library(Unused {
            context: self.context.clone(),
            raw: self.raw,
            keep: Box::new(self.log.take()),
        });
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Library").field("raw", &self.0.raw).finish_non_exhaustive()
    }
}

/// The name that the driver gives a kernel.
fn kernel_name(context: &Context, kernel: CUkernel) -> Result<String> {
    let mut name = core::ptr::null();
    // SAFETY: the kernel's library is loaded and the out pointer valid.
    let code = unsafe { context.driver().cuKernelGetName(&raw mut name, kernel) }?;
    context.check(Call::cuKernelGetName, code)?;
    if name.is_null() {
        return Ok(String::new());
    }
    // SAFETY: the name is a C string that lives as long as the library.
    Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

/// The result of a call that may compile: with the log, if that is what went wrong.
fn compiled(context: &Context, call: Call, code: CUresult, log: &Log) -> Result<()> {
    match context.check(call, code) {
        Err(Error::Driver { call, code }) if is_of_image(code) => {
            Err(Error::Jit { call, code, log: log.text().into() })
        }
        result => result,
    }
}

fn is_of_image(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_INVALID_IMAGE
            | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
            | CUresult::CUDA_ERROR_INVALID_PTX
            | CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND
            | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            | CUresult::CUDA_ERROR_JIT_COMPILATION_DISABLED
            | CUresult::CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC
            | CUresult::CUDA_ERROR_INVALID_SOURCE
            | CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
            | CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
    )
}

const OPTIONS: usize = 2;
const LOG_BYTES: usize = 16 * 1024;

/// Options of the driver's compiler, with the buffer for its log. They have to outlive the library: with lazy loading the driver compiles later,
/// and it writes the log's length into the values.
struct Log(*mut LogParts);

struct LogParts {
    options: [CUjit_option; OPTIONS],
    values: [*mut c_void; OPTIONS],
    text: [c_char; LOG_BYTES],
}

// SAFETY: the parts are written by the driver inside calls that `Library::compile_alone` keeps apart, and read by us after such a call.
unsafe impl Send for Log {}
// SAFETY: as above.
unsafe impl Sync for Log {}

impl Log {
    fn new() -> Self {
        let parts = Box::into_raw(Box::new(LogParts {
            options: [
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            ],
            // The driver takes the number in place of a pointer.
            values: [core::ptr::null_mut(), core::ptr::without_provenance_mut(LOG_BYTES)],
            text: [0; LOG_BYTES],
        }));
        // SAFETY: the box was just made.
        unsafe { (*parts).values[0] = (&raw mut (*parts).text).cast() };
        Self(parts)
    }

    fn parts(&self) -> *mut LogParts {
        self.0
    }

    /// What the compiler wrote, without the white space at its end.
    fn text(&self) -> String {
        // SAFETY: the parts are alive, and no compilation is running.
        let bytes: &[u8] = bytemuck::cast_slice(unsafe { &(*self.0).text });
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).trim_end().to_owned()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // SAFETY: the parts came from a box, and the library that used them is unloaded or was never loaded.
        drop(unsafe { Box::from_raw(self.0) });
    }
}
