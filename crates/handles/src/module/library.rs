//! Libraries: loaded images with kernels in them.

use core::ffi::CStr;
use core::fmt;
use std::sync::Arc;

use cuda_sys::{CUkernel, CUlib_st, CUlibrary, CUresult, Call};

use super::entry_wait::EntryWait;
use super::image::{Checked, Image};
use super::jit::{Jit, LoadOptions};
use super::known_globals::Globals;
use super::module_state;
use crate::context::{Context, lock_unless_inside};
use crate::destroy::{self, UnusedLibrary};
use crate::error::Result;
use crate::registry::{Raw, identity};
use crate::sync::{Lock, LockGuard, Rank};

pub(crate) struct LibraryBox {
    raw: Raw<CUlib_st>,
    context: Context,
    /// `None` for a library that other code loaded and will unload; otherwise only the drop takes
    /// it.
    jit: Option<Jit>,
    /// The driver may compile when a kernel is first asked for, and writes to the log then: one at
    /// a time.
    compiling: Lock<()>,
    globals: Globals,
    /// `None` if it was not asked for.
    entry_wait: Option<EntryWait>,
    /// Whether the text of the image has no state; `false` if there is no text.
    has_stateless_text: bool,
}

/// A loaded image. It stays loaded while a handle, a kernel or a graph holds it;
/// [`reaper::drain`](crate::reaper::drain) unloads it afterwards.
#[derive(Clone)]
pub struct Library(pub(crate) Arc<LibraryBox>);

identity!(Library);

impl Library {
    /// Loads an image with the default options.
    ///
    /// # Errors
    /// As [`load_with`](Self::load_with).
    #[doc(alias = "cuModuleLoadData")]
    #[doc(alias = "cudaLibraryLoadData")]
    pub fn load(context: &Context, image: Image<'_>) -> Result<Self> {
        Self::load_with(context, image, &LoadOptions::default())
    }

    /// Loads an image. PTX is compiled now.
    ///
    /// Calls `cuLibraryLoadData`, and `cuLibraryGetKernel` (CUDA 12.0), since only that makes the
    /// driver check the image.
    ///
    /// # Errors
    /// The image is cut off or of no known kind; it does not compile or has no code for the device
    /// ([`Error::Jit`](crate::Error::Jit), with the compiler's log); or the driver refuses the
    /// call.
    #[doc(alias = "cuLibraryLoadData")]
    #[doc(alias = "cuModuleLoadData")]
    #[doc(alias = "cudaLibraryLoadData")]
    pub fn load_with(context: &Context, image: Image<'_>, options: &LoadOptions) -> Result<Self> {
        Self::load_checked(context, &image.check()?, options)
    }

    /// Loads an image that is known to be whole.
    pub(crate) fn load_checked(
        context: &Context,
        image: &Checked<'_>,
        options: &LoadOptions,
    ) -> Result<Self> {
        Self::load_noting(context, image, options, None)
    }

    /// As [`load_checked`](Self::load_checked), with a note whether the kernels of the image wait.
    pub(super) fn load_noting(
        context: &Context,
        image: &Checked<'_>,
        options: &LoadOptions,
        entry_wait: Option<EntryWait>,
    ) -> Result<Self> {
        context.ensure_usable()?;
        let jit = Jit::new(options)?;
        let (count, names, values) = jit.raw();
        let mut raw = core::ptr::null_mut();
        // SAFETY: the image is whole, the options and the buffers they name live as long as the
        // library, and the out pointer is valid.
        let code = unsafe {
            context.driver().cuLibraryLoadData(
                &raw mut raw,
                image.as_ptr(),
                names,
                values,
                count,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                0,
            )
        };
        jit.check(context, Call::cuLibraryLoadData, code)?;
        let has_stateless_text = match image {
            Checked::Text(text) => text.to_str().is_ok_and(module_state::is_stateless),
            Checked::Binary(_) => false,
        };
        let library = Self::wrap(context, raw, Some(jit), entry_wait, has_stateless_text);
        library.probe()?;
        Ok(library)
    }

    /// The library behind a raw handle that other code loaded. It is not unloaded with the last
    /// handle.
    ///
    /// # Safety
    /// `raw` is a library of the driver, it can be used in `context`, and it stays loaded until
    /// every handle of it, every kernel of it, and everything that holds these is gone.
    #[must_use]
    pub unsafe fn from_raw(context: &Context, raw: CUlibrary) -> Self {
        Self::wrap(context, raw, None, None, false)
    }

    fn wrap(
        context: &Context,
        raw: CUlibrary,
        jit: Option<Jit>,
        entry_wait: Option<EntryWait>,
        has_stateless_text: bool,
    ) -> Self {
        Self(Arc::new(LibraryBox {
            raw: Raw::new(raw),
            context: context.clone(),
            jit,
            compiling: Lock::new(Rank::Compiler, ()),
            globals: Globals::default(),
            entry_wait,
            has_stateless_text,
        }))
    }

    /// The driver says that PTX is wrong, or that an image is none, when first asked for a kernel:
    /// so it is asked for one that is not there.
    fn probe(&self) -> Result<()> {
        let _alone = self.compile_alone()?;
        let mut kernel = core::ptr::null_mut();
        // SAFETY: the library is loaded, the name is a C string, and the out pointer is valid.
        let code = unsafe {
            let name = c"#".as_ptr();
            self.context().driver().cuLibraryGetKernel(&raw mut kernel, self.as_raw(), name)
        };
        match code {
            CUresult::CUDA_ERROR_NOT_FOUND => Ok(()),
            code => self.compiled(Call::cuLibraryGetKernel, code),
        }
    }

    /// The names of its kernels, in the driver's order.
    ///
    /// Calls `cuLibraryGetKernelCount`, `cuLibraryEnumerateKernels` (CUDA 12.4), and
    /// `cuKernelGetName` (CUDA 12.3).
    ///
    /// # Errors
    /// The driver is older than 12.4, or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
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

    /// The outcome of [`load_waiting`](Self::load_waiting): whether its kernels wait at their
    /// entry, or why they do not. `None` for a library that was loaded otherwise.
    #[must_use]
    pub fn entry_wait(&self) -> Option<&EntryWait> {
        self.0.entry_wait.as_ref()
    }

    /// Whether its kernels are known to share nothing but the memory of their arguments, between
    /// launches and with the host. Makes no driver call.
    ///
    /// That is known of PTX which was loaded by this library and whose text has no variable that
    /// kernels can write (`__device__`, `__managed__`, textures), and no function from elsewhere
    /// (`printf`, `malloc`). Constants (`__constant__`) are no obstacle, unless one was asked for
    /// by [`global`](Self::global): the host may write it then. Of a cubin, a fatbin, and libraries
    /// that other code loaded, nothing is known.
    #[must_use]
    pub fn is_stateless(&self) -> bool {
        self.0.has_stateless_text && !self.globals().were_given()
    }

    /// Its variables that have owners.
    pub(crate) fn globals(&self) -> &Globals {
        &self.0.globals
    }

    /// Keeps others from compiling while the log is in use.
    pub(crate) fn compile_alone(&self) -> Result<LockGuard<'_, ()>> {
        lock_unless_inside(self.context(), "the library", &self.0.compiling)
    }

    /// The result of a call that may compile.
    pub(crate) fn compiled(&self, call: Call, code: CUresult) -> Result<()> {
        match &self.0.jit {
            Some(jit) => jit.check(self.context(), call, code),
            None => self.context().check(call, code),
        }
    }

    /// Whether it is unloaded with its last handle.
    pub(crate) fn is_owned(&self) -> bool {
        self.0.jit.is_some()
    }
}

impl Drop for LibraryBox {
    fn drop(&mut self) {
        // A library that is never unloaded is never used either: the driver writes to the log only
        // when asked for a kernel.
        if self.jit.is_none() || !destroy::may_call(&self.context) {
            return;
        }
        destroy::push_library(UnusedLibrary {
            context: self.context.clone(),
            raw: self.raw,
            keep: Box::new(self.jit.take()),
        });
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Library").field("raw", &self.0.raw).finish_non_exhaustive()
    }
}

/// The name that the driver gives a kernel.
pub(crate) fn kernel_name(context: &Context, kernel: CUkernel) -> Result<String> {
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
