//! Variables of libraries as memory.

use std::ffi::CString;
use std::sync::Arc;

use cuda_sys::{CUdeviceptr, CUresult, Call};

use super::library::Library;
use crate::destroy::Kept;
use crate::error::{Error, Result, WrongVariable};
use crate::memory::{Allocation, Buffer, Element};

/// How a variable is looked up.
#[derive(Clone, Copy)]
enum Lookup {
    Global,
    Managed,
}

impl Library {
    /// A `__device__` or `__constant__` variable as a buffer, by its name in the PTX (for C++ code
    /// without `extern "C"`, the mangled name). It can be used like all device memory: in copies,
    /// fills, kernel arguments and graph nodes. Copies and fills write a constant; a launch
    /// enqueued after them reads the new value.
    ///
    /// The buffer has as many elements as the variable has room for. The buffer and all work
    /// enqueued with it keep the library loaded. Asking again returns the same memory. A library
    /// has one set of variables in each context; these belong to [its own](Self::context). [Shared
    /// libraries](Self::load_shared) share them.
    ///
    /// [`kernel!`](https://docs.rs/cuda-launch/latest/cuda_launch/macro.kernel.html) declares
    /// variables with their types, for safe code.
    ///
    /// ```no_run
    /// # use cuda_handles::{Context, Image, Result};
    /// # fn example(context: &Context, image: Image<'_>) -> Result<()> {
    /// use cuda_handles::Library;
    ///
    /// let (library, stream) = (Library::load(context, image)?, context.stream()?);
    /// // SAFETY: the kernels of the image only compute with the numbers in `weights`.
    /// let weights = unsafe { library.global::<f32>("weights") }?;
    /// weights.write_blocking(&stream, &vec![0.5; weights.len()])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The first use of a library, by this or by a kernel of it, loads it to the device. **The
    /// driver waits** there for work that runs on the device; later uses do not wait.
    ///
    /// Calls `cuLibraryGetGlobal` (CUDA 12.0), with the context made current for it.
    ///
    /// # Safety
    /// Safe code may write every value of `T` to every element of the buffer, at any time. So no
    /// kernel of the image may rely on more than that to stay inside its memory; a kernel that
    /// takes positions or addresses from the variable is launched with the promise that they are
    /// valid. Variables of the compiler itself, such as tables of functions and texts of `printf`,
    /// must not be requested.
    ///
    /// # Errors
    /// [`Error::NoGlobal`](crate::Error::NoGlobal) if there is no such variable;
    /// [`Error::WrongVariable`](crate::Error::WrongVariable) if its size is no multiple of the
    /// element's, or its address is not aligned for it; [`Error::Jit`](crate::Error::Jit) if the
    /// image does not compile; or the driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuLibraryGetGlobal")]
    #[doc(alias = "cuModuleGetGlobal")]
    #[doc(alias = "cudaGetSymbolAddress")]
    #[doc(alias = "cudaGetSymbolSize")]
    #[doc(alias = "cudaMemcpyToSymbol")]
    #[doc(alias = "cudaMemcpyFromSymbol")]
    pub unsafe fn global<T: Element>(&self, name: &str) -> Result<Buffer<T>> {
        self.variable(name, Lookup::Global)
    }

    /// A `__managed__` variable as a buffer. A library has one for all contexts; otherwise this is
    /// as [`global`](Self::global).
    ///
    /// Calls `cuLibraryGetManaged` (CUDA 12.0).
    ///
    /// # Safety
    /// As for [`global`](Self::global), and no reference of Rust's leads into the variable while
    /// the buffer exists.
    ///
    /// # Errors
    /// As for [`global`](Self::global).
    #[doc(alias = "cuLibraryGetManaged")]
    pub unsafe fn managed_global<T: Element>(&self, name: &str) -> Result<Buffer<T>> {
        self.variable(name, Lookup::Managed)
    }

    fn variable<T: Element>(&self, name: &str, lookup: Lookup) -> Result<Buffer<T>> {
        self.context().ensure_usable()?;
        let allocation = match self.globals().find(name) {
            Some(known) => known,
            None => self.look_up(name, lookup)?,
        };
        elements(name, &allocation)
    }

    fn look_up(&self, name: &str, lookup: Lookup) -> Result<Arc<Allocation>> {
        let (call, what) = match lookup {
            Lookup::Global => (Call::cuLibraryGetGlobal, "variable"),
            Lookup::Managed => (Call::cuLibraryGetManaged, "managed variable"),
        };
        let none = || Error::NoGlobal { what, name: name.into() };
        // The driver has `INVALID_VALUE` for no name at all.
        let text = CString::new(name).ok().filter(|_| !name.is_empty()).ok_or_else(none)?;
        let (mut address, mut bytes): (CUdeviceptr, usize) = (0, 0);
        let context = self.context();
        let current = context.enter()?;
        let alone = self.compile_alone()?;
        // SAFETY: the library is loaded, its context is current, the name is a C string, and the
        // out pointers are valid.
        let code = unsafe {
            let (driver, library, name) = (context.driver(), self.as_raw(), text.as_ptr());
            match lookup {
                Lookup::Global => driver.cuLibraryGetGlobal(&raw mut address, &raw mut bytes, library, name),
                Lookup::Managed => {
                    driver.cuLibraryGetManaged(&raw mut address, &raw mut bytes, library, name)
                }
            }
        };
        if code == CUresult::CUDA_ERROR_NOT_FOUND {
            return Err(none());
        }
        let outcome = self.compiled(call, code);
        drop((alone, current));
        // So a driver answers for the name of a kernel.
        if code == CUresult::CUDA_ERROR_INVALID_VALUE && self.kernel(name).is_ok() {
            return Err(none());
        }
        outcome?;
        let (managed, owner) = (matches!(lookup, Lookup::Managed), Kept::new(self.clone()));
        let allocation = Arc::new(Allocation::variable(context, address, bytes, managed, owner));
        Ok(self.globals().insert(name, allocation))
    }
}

/// The whole variable as elements.
fn elements<T: Element>(name: &str, allocation: &Arc<Allocation>) -> Result<Buffer<T>> {
    let (address, bytes, size) = (allocation.address(), allocation.bytes(), size_of::<T>());
    if size == 0 || !bytes.is_multiple_of(size) || !address.is_multiple_of(align_of::<T>() as u64) {
        let wrong = WrongVariable::new::<T>(name, address, bytes, None);
        return Err(Error::WrongVariable(Box::new(wrong)));
    }
    Ok(Buffer::part(allocation, address, bytes / size))
}
