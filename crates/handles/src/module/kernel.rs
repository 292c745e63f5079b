//! Kernels.

use core::fmt;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use cuda_sys::{
    CUdevice, CUfunc_st, CUfunction, CUfunction_attribute as Attribute, CUkern_st, CUkernel, CUresult, Call,
};

use super::library;
use super::library::Library;
use crate::context::Context;
use crate::error::{Error, Near, Result};
use crate::registry::{Raw, Registry, Sharded, identity};
use crate::sync::process;

static KERNELS: LazyLock<Registry<Sharded<KernelBox>>> = LazyLock::new(|| Registry::with_map(Sharded::new()));

/// One parameter in a kernel's parameter block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// Where it starts, in bytes.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
}

/// What the compiler and the driver made of a kernel; read once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct KernelAttributes {
    /// Threads that a block of it may have on its device.
    pub max_threads_per_block: u32,
    /// Bytes of shared memory that it declares itself.
    pub static_shared_bytes: u32,
    /// Bytes of dynamic shared memory that a launch may add, unless
    /// [`Kernel::set_max_dynamic_shared_bytes`] has changed that.
    pub max_dynamic_shared_bytes: u32,
    /// Bytes of constant memory that it declares.
    pub constant_bytes: u32,
    /// Bytes of local memory of each thread.
    pub local_bytes: u32,
    /// 32-bit registers of each thread.
    pub registers: u32,
    /// The PTX version of its source, ten times major plus minor.
    pub ptx_version: u32,
    /// The compute capability of its code, ten times major plus minor.
    pub binary_version: u32,
}

struct KernelBox {
    raw: Raw<CUkern_st>,
    id: u64,
    function: Raw<CUfunc_st>,
    library: Library,
    name: Box<str>,
    parameters: Option<Box<[Parameter]>>,
    attributes: KernelAttributes,
    /// What all handles of the kernel on its device have in common.
    shared: Arc<Settings>,
}

/// What is set of a kernel on a device, once for all handles of it: those of adopted libraries are
/// not found again, and there may be several.
struct Settings {
    /// The dynamic shared memory that it may have now.
    max_dynamic_shared: AtomicU32,
    /// What was last found of how many blocks fit on a multiprocessor; for the crate that asks. 0
    /// if nothing.
    occupancy: AtomicU64,
}

/// The settings of kernels that somebody holds, by kernel and device.
static SETTINGS: LazyLock<Mutex<AllSettings>> = LazyLock::new(Mutex::default);

/// By raw kernel and device.
type AllSettings = HashMap<(usize, CUdevice), Weak<Settings>>;

/// The settings of a kernel. What is known already is right, whatever was read meanwhile.
fn settings(key: (usize, CUdevice), max_dynamic_shared: u32) -> Arc<Settings> {
    let mut all = SETTINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(&key).and_then(Weak::upgrade) {
        return known;
    }
    let new = Arc::new(Settings {
        max_dynamic_shared: AtomicU32::new(max_dynamic_shared),
        occupancy: AtomicU64::new(0),
    });
    all.insert(key, Arc::downgrade(&new));
    new
}

/// A kernel, with its library, its function in the context, and what is known about it. Asking
/// twice for a kernel gives the same one.
///
/// Of a library that other code owns ([`Library::from_raw`]) it gives another handle, unequal to
/// the first. They stand for the same kernel of the driver, and have the limit of shared memory in
/// common.
#[derive(Clone)]
pub struct Kernel(Arc<KernelBox>);

identity!(Kernel);

impl Library {
    /// The kernel with this name, as it stands in the PTX (for C++ code without `extern "C"` the
    /// mangled name).
    ///
    /// It is loaded to the device now, so that no later launch or capture has to. For the first
    /// kernel or variable of a library **the driver waits** there for work that runs on the device;
    /// later ones do not wait. Stands on `cuLibraryGetKernel`, `cuKernelGetFunction`,
    /// `cuKernelGetAttribute`, CUDA 12.0, and `cuKernelGetParamInfo`, CUDA 12.4.
    ///
    /// # Errors
    /// There is none with this name (the error lists the nearest of those there are), it does not
    /// compile, or what the driver answers.
    #[doc(alias = "cuLibraryGetKernel")]
    #[doc(alias = "cuKernelGetFunction")]
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
        // Of somebody else's library the driver may give the value away again behind our back.
        let known =
            self.is_owned().then(|| KERNELS.register_unless_known(raw.addr(), Arc::downgrade(&kernel)));
        Ok(Kernel(known.flatten().unwrap_or(kernel)))
    }

    /// Reads what is to be known about a kernel; its context is current.
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
            shared: settings((raw.addr(), context.device().as_raw()), attributes.max_dynamic_shared_bytes),
            attributes,
        }))
    }

    fn no_kernel(&self, name: &str) -> Error {
        let kernels = self.kernel_names().ok().map(|names| Near::of(name, names));
        Error::NoKernel { name: name.into(), kernels }
    }
}

impl Kernel {
    /// The kernel that this library knows by a raw handle: its whole owner, as long as anybody
    /// holds it.
    ///
    /// # Safety
    /// `raw` is a kernel whose library is loaded.
    ///
    /// # Errors
    /// [`Error::Unknown`] if nobody holds a [`Kernel`] for it.
    pub unsafe fn from_raw(raw: CUkernel) -> Result<Self> {
        process::ensure_not_forked()?;
        KERNELS.find(&raw.addr()).map(Self).ok_or(Error::Unknown { what: "kernel", raw: raw.addr() })
    }

    /// The kernel behind a raw handle. One that this library knows gives its whole owner; of any
    /// other `library` is taken to be its library, and kept.
    ///
    /// Stands on `cuKernelGetLibrary`, CUDA 12.5, to check that; on older drivers it is not
    /// checked.
    ///
    /// # Safety
    /// `raw` is a kernel whose library is loaded; for one that is not known, `library` is that.
    ///
    /// # Errors
    /// The kernel is in another library ([`Error::OtherLibrary`] names both); it is not known and
    /// no library is given ([`Error::Unknown`]); or what the driver answers.
    #[doc(alias = "cuKernelGetLibrary")]
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
        let name = library::kernel_name(library.context(), raw).unwrap_or_default().into_boxed_str();
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

    /// Its parameters in order; `None` where the driver does not tell (before 12.4). Read once,
    /// when the kernel was got; no driver call.
    #[doc(alias = "cuKernelGetParamInfo")]
    #[must_use]
    #[inline]
    pub fn parameters(&self) -> Option<&[Parameter]> {
        self.0.parameters.as_deref()
    }

    /// What the compiler and the driver made of it. Read once, when the kernel was got; no driver
    /// call.
    #[doc(alias = "cuKernelGetAttribute")]
    #[must_use]
    #[inline]
    pub fn attributes(&self) -> &KernelAttributes {
        &self.0.attributes
    }
}

impl Kernel {
    /// Bytes of dynamic shared memory that a launch may add now; see
    /// [`set_max_dynamic_shared_bytes`](Self::set_max_dynamic_shared_bytes). No driver call.
    #[must_use]
    #[inline]
    pub fn max_dynamic_shared_bytes(&self) -> u32 {
        self.0.shared.max_dynamic_shared.load(Ordering::Relaxed)
    }

    /// What [`cuda-launch`](https://docs.rs/cuda-launch) last found of the kernel's occupancy, in
    /// its own form; 0 once an attribute is set.
    #[doc(hidden)]
    #[must_use]
    pub fn occupancy_memo(&self) -> &AtomicU64 {
        &self.0.shared.occupancy
    }

    /// Lets launches add that many bytes of dynamic shared memory, up to the device's opt-in limit
    /// less what the kernel declares itself. It holds for everybody who uses the kernel on this
    /// device.
    ///
    /// Stands on `cuKernelSetAttribute`, CUDA 12.0.
    ///
    /// # Errors
    /// More than the device allows ([`Error::Limit`]), or what the driver answers.
    #[doc(alias = "cuKernelSetAttribute")]
    pub fn set_max_dynamic_shared_bytes(&self, bytes: u32) -> Result<()> {
        let limits = self.context().limits();
        let most = limits.max_shared_bytes_opt_in.max(limits.max_shared_bytes);
        let limit = most.saturating_sub(self.attributes().static_shared_bytes);
        if bytes > limit {
            let what = "the dynamic shared memory of a kernel, in bytes";
            return Err(Error::Limit { what, asked: bytes.into(), limit: limit.into() });
        }
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        self.set_attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value)
    }

    /// One attribute as it is now, for the context's device.
    ///
    /// Stands on `cuKernelGetAttribute`, CUDA 12.0.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuKernelGetAttribute")]
    pub fn attribute(&self, attribute: Attribute) -> Result<i32> {
        self.context().ensure_usable()?;
        read_attribute(self.context(), self.as_raw(), attribute)
    }

    /// Sets one attribute, for the context's device and everybody who uses the kernel there; such
    /// as `CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT` and
    /// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
    ///
    /// Stands on `cuKernelSetAttribute`, CUDA 12.0.
    ///
    /// # Errors
    /// What the driver answers; `INVALID_VALUE` for an attribute that cannot be set.
    #[doc(alias = "cuKernelSetAttribute")]
    #[doc(alias = "cuFuncSetAttribute")]
    pub fn set_attribute(&self, attribute: Attribute, value: i32) -> Result<()> {
        let context = self.context();
        context.ensure_usable()?;
        // SAFETY: the kernel's library is loaded.
        let code = unsafe {
            let device = context.device().as_raw();
            context.driver().cuKernelSetAttribute(attribute, value, self.as_raw(), device)
        };
        context.check(Call::cuKernelSetAttribute, code)?;
        // It may depend on any of them.
        self.0.shared.occupancy.store(0, Ordering::Relaxed);
        if attribute == Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES {
            self.0.shared.max_dynamic_shared.store(u32::try_from(value).unwrap_or(0), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Loads the kernel's code to the device now, where the driver would do it at the first launch.
    ///
    /// Stands on `cuFuncLoad`, CUDA 12.4.
    ///
    /// # Errors
    /// The driver is older, or what it answers.
    #[doc(alias = "cuFuncLoad")]
    pub fn load_now(&self) -> Result<()> {
        let context = self.context();
        let _current = context.enter()?;
        // SAFETY: the function is alive as its library is.
        let code = unsafe { context.driver().cuFuncLoad(self.function()) }?;
        self.0.library.compiled(Call::cuFuncLoad, code)
    }
}

impl Drop for KernelBox {
    fn drop(&mut self) {
        KERNELS.forget(self.raw.key(), self);
        let mut all = SETTINGS.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody gets another handle to them while the table is locked.
        if Arc::strong_count(&self.shared) == 1 {
            all.remove(&(self.raw.key(), self.library.context().device().as_raw()));
        }
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

fn read_attribute(context: &Context, kernel: CUkernel, attribute: Attribute) -> Result<i32> {
    let mut value = 0;
    // SAFETY: the kernel's library is loaded and the out pointer valid.
    let code = unsafe {
        let device = context.device().as_raw();
        context.driver().cuKernelGetAttribute(&raw mut value, attribute, kernel, device)
    };
    context.check(Call::cuKernelGetAttribute, code)?;
    Ok(value)
}

/// Asks for one parameter after the other until the driver says that there is none.
fn parameters(context: &Context, kernel: CUkernel) -> Result<Option<Box<[Parameter]>>> {
    let mut parameters = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the kernel's library is loaded and the out pointers are valid.
        let answer = unsafe {
            context.driver().cuKernelGetParamInfo(kernel, parameters.len(), &raw mut offset, &raw mut size)
        };
        match answer {
            Err(_older) => return Ok(None),
            Ok(CUresult::CUDA_ERROR_INVALID_VALUE) => return Ok(Some(parameters.into())),
            Ok(code) => context.check(Call::cuKernelGetParamInfo, code)?,
        }
        parameters.push(Parameter { offset, size });
    }
}

fn attributes(context: &Context, kernel: CUkernel) -> Result<KernelAttributes> {
    let read =
        |attribute| read_attribute(context, kernel, attribute).map(|value| u32::try_from(value).unwrap_or(0));
    Ok(KernelAttributes {
        max_threads_per_block: read(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?
            .min(context.limits().max_threads_per_block),
        static_shared_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        max_dynamic_shared_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
        constant_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
        local_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        registers: read(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        ptx_version: read(Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
        binary_version: read(Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
    })
}
