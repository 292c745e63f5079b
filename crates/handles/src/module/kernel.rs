//! Kernels.

use super::kernel_facts::{KernelAttributes, Parameter, attributes, parameters};
use core::fmt;
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use cuda_sys::{CUfunc_st, CUfunction, CUkern_st, CUkernel, CUresult, Call};

use super::entry_wait::EntryWait;
use super::kernel_settings::Settings;
use super::library::Library;
use super::{kernel_settings, library};
use crate::context::Context;
use crate::error::{Error, Near, Result};
use crate::registry::{Raw, Registry, Sharded, identity};
use crate::sync::process;

static KERNELS: LazyLock<Registry<Sharded<KernelBox>>> = LazyLock::new(|| Registry::with_map(Sharded::new()));

pub(super) struct KernelBox {
    pub(super) raw: Raw<CUkern_st>,
    pub(super) id: u64,
    pub(super) function: Raw<CUfunc_st>,
    pub(super) library: Library,
    pub(super) name: Box<str>,
    pub(super) parameters: Option<Box<[Parameter]>>,
    pub(super) attributes: KernelAttributes,
    /// The settings that all handles of the kernel on its device share.
    pub(super) shared: Arc<Settings>,
}

/// A kernel, with its library, its function in the context, and its attributes. Looking a kernel up
/// twice returns the same one.
///
/// For a library that other code owns ([`Library::from_raw`]), each lookup returns another handle,
/// unequal to the first. They stand for the same kernel of the driver and share its limit of shared
/// memory.
#[derive(Clone)]
pub struct Kernel(pub(super) Arc<KernelBox>);

identity!(Kernel);

impl Library {
    /// The kernel with this name in the PTX (for C++ code without `extern "C"`, the mangled name).
    ///
    /// It is loaded to the device now, so that no later launch or capture has to load it. For the
    /// first kernel or variable of a library **the driver waits** for running work of the device;
    /// for later ones it does not. Calls `cuLibraryGetKernel`, `cuKernelGetFunction`,
    /// `cuKernelGetAttribute` (CUDA 12.0), and `cuKernelGetParamInfo` (CUDA 12.4).
    ///
    /// # Errors
    /// [`Error::NoKernel`](crate::Error::NoKernel) if there is no such kernel (with the most
    /// similar names), [`Error::Jit`](crate::Error::Jit) if it does not compile, or the driver
    /// refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuLibraryGetKernel")]
    #[doc(alias = "cuKernelGetFunction")]
    #[doc(alias = "cudaLibraryGetKernel")]
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let context = self.context();
        let current = context.enter()?;
        let _alone = self.compile_alone()?;
        let Some(raw) = find(self, name)? else { return Err(self.no_kernel(name)) };
        if let Some(known) = KERNELS.find(&raw.addr()) {
            return Ok(Kernel(known));
        }
        let kernel = self.wrap_kernel(raw, name.into())?;
        drop(current);
        // The driver may reuse a kernel of other code's library without this library's knowledge.
        let known =
            self.is_owned().then(|| KERNELS.register_unless_known(raw.addr(), Arc::downgrade(&kernel)));
        Ok(Kernel(known.flatten().unwrap_or(kernel)))
    }

    /// Reads the attributes of a kernel; its context is current.
    fn wrap_kernel(&self, raw: CUkernel, name: Box<str>) -> Result<Arc<KernelBox>> {
        let context = self.context();
        let mut function = core::ptr::null_mut();
        // SAFETY: the kernel's library is loaded, its context is current, and the out pointer is
        // valid.
        let code = unsafe { context.driver().cuKernelGetFunction(&raw mut function, raw) };
        self.compiled(Call::cuKernelGetFunction, code)?;
        let attributes = attributes(context, raw)?;
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Ok(Arc::new(KernelBox {
            raw: Raw::new(raw),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            function: Raw::new(function),
            library: self.clone(),
            name,
            parameters: parameters(context, raw)?,
            shared: kernel_settings::of(
                (raw.addr(), context.device().as_raw()),
                attributes.max_dynamic_shared_bytes,
            ),
            attributes,
        }))
    }

    fn no_kernel(&self, name: &str) -> Error {
        let kernels = self.kernel_names().ok().map(|names| Near::of(name, names));
        Error::NoKernel { name: name.into(), kernels }
    }
}

impl Kernel {
    /// The kernel that this library knows by a raw handle, as long as a handle of it exists.
    ///
    /// # Safety
    /// `raw` is a kernel whose library is loaded.
    ///
    /// # Errors
    /// [`Error::Unknown`](crate::Error::Unknown) if no [`Kernel`] for it exists.
    pub unsafe fn from_raw(raw: CUkernel) -> Result<Self> {
        process::ensure_not_forked()?;
        KERNELS.find(&raw.addr()).map(Self).ok_or(Error::Unknown { what: "kernel", raw: raw.addr() })
    }

    /// The kernel behind a raw handle. For a kernel that this library knows, this is its
    /// existing owner. For any other kernel, `library` is taken as its library and kept.
    ///
    /// Calls `cuKernelGetLibrary` (CUDA 12.5), to check that; on older drivers it is not checked.
    /// For a kernel that is not known, also calls `cuKernelGetName` (CUDA 12.3); on older drivers
    /// its name is empty.
    ///
    /// # Safety
    /// `raw` is a kernel whose library is loaded; for one that is not known, `library` is that.
    ///
    /// # Errors
    /// The kernel is in another library ([`Error::OtherLibrary`](crate::Error::OtherLibrary) names
    /// both); it is not known and no library is given ([`Error::Unknown`](crate::Error::Unknown));
    /// or the driver refuses the call.
    #[doc(alias = "cuKernelGetLibrary")]
    #[doc(alias = "cuKernelGetName")]
    pub unsafe fn from_raw_in(raw: CUkernel, library: Option<&Library>) -> Result<Self> {
        process::ensure_not_forked()?;
        if let Some(known) = KERNELS.find(&raw.addr()).map(Self) {
            return match library {
                Some(library) if library.as_raw() != known.library().as_raw() => Err(Error::OtherLibrary {
                    kernel: known.name().into(),
                    given: library.as_raw().addr(),
                    found: known.library().as_raw().addr(),
                }),
                _ => Ok(known),
            };
        }
        let Some(library) = library else {
            return Err(Error::Unknown { what: "kernel", raw: raw.addr() });
        };
        let current = library.context().enter()?;
        let name = match library::kernel_name(library.context(), raw) {
            Err(Error::Missing(_)) => Box::default(),
            name => name?.into_boxed_str(),
        };
        ensure_in(library, raw, &name)?;
        let kernel = library.wrap_kernel(raw, name)?;
        drop(current);
        let known =
            library.is_owned().then(|| KERNELS.register_unless_known(raw.addr(), Arc::downgrade(&kernel)));
        Ok(Self(known.flatten().unwrap_or(kernel)))
    }

    /// The driver's own handle, good in every context.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUkernel {
        self.0.raw.get()
    }

    /// A number, not 0, that no other kernel of this process has or gets. It is this library's, not
    /// the driver's.
    #[must_use]
    #[inline]
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The kernel's function in its [context](Self::context).
    #[must_use]
    #[inline]
    pub fn function(&self) -> CUfunction {
        self.0.function.get()
    }

    /// The library it is in.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.0.library
    }

    /// The context that its function belongs to.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        self.0.library.context()
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether it waits for its programmatic predecessors before it does anything else, because its
    /// library was loaded by [`Library::load_waiting`]. A wait of the kernel's own does not count.
    /// Makes no driver call.
    #[doc(alias = "griddepcontrol")]
    #[must_use]
    #[inline]
    pub fn waits_at_entry(&self) -> bool {
        self.library().entry_wait().is_some_and(EntryWait::is_waiting)
    }

    /// Its parameters in order; `None` for drivers before 12.4. Read once, when the kernel was
    /// looked up; makes no driver call.
    #[doc(alias = "cuKernelGetParamInfo")]
    #[must_use]
    #[inline]
    pub fn parameters(&self) -> Option<&[Parameter]> {
        self.0.parameters.as_deref()
    }

    /// The attributes of the compiled kernel. Read once, when the kernel was looked up; makes no
    /// driver call.
    #[doc(alias = "cuKernelGetAttribute")]
    #[doc(alias = "cudaFuncGetAttributes")]
    #[must_use]
    #[inline]
    pub fn attributes(&self) -> &KernelAttributes {
        &self.0.attributes
    }
}

impl Drop for KernelBox {
    fn drop(&mut self) {
        KERNELS.forget(self.raw.key(), self);
        let key = (self.raw.key(), self.library.context().device().as_raw());
        kernel_settings::forget(key, &self.shared);
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Kernel").field("name", &self.name()).field("raw", &self.0.raw).finish()
    }
}

/// The driver's handle for a name; `None` if the library has no such kernel.
fn find(library: &Library, name: &str) -> Result<Option<CUkernel>> {
    let Ok(text) = CString::new(name) else { return Ok(None) };
    let mut raw = core::ptr::null_mut();
    // SAFETY: the library is loaded, the name is a C string, and the out pointer is valid.
    let code = unsafe {
        library.context().driver().cuLibraryGetKernel(&raw mut raw, library.as_raw(), text.as_ptr())
    };
    match code {
        CUresult::CUDA_ERROR_NOT_FOUND => Ok(None),
        code => library.compiled(Call::cuLibraryGetKernel, code).map(|()| Some(raw)),
    }
}

/// An error if the driver says that the kernel is in another library.
fn ensure_in(library: &Library, kernel: CUkernel, name: &str) -> Result<()> {
    let mut found = core::ptr::null_mut();
    // SAFETY: the kernel's library is loaded and the out pointer valid.
    let Ok(code) = (unsafe { library.context().driver().cuKernelGetLibrary(&raw mut found, kernel) }) else {
        return Ok(());
    };
    library.context().check(Call::cuKernelGetLibrary, code)?;
    if found == library.as_raw() {
        return Ok(());
    }
    Err(Error::OtherLibrary { kernel: name.into(), given: library.as_raw().addr(), found: found.addr() })
}
