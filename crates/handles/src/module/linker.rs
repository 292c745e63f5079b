//! Linking several images into one.

use core::ffi::c_void;
use core::fmt;
use std::ffi::CString;
use std::sync::Arc;

use cuda_sys::{CUjitInputType, CUlinkState, CUlinkState_st, Call};

use super::image::{Checked, Image, check_archive};
use super::jit::{Jit, LoadOptions};
use super::library::Library;
use crate::context::Context;
use crate::destroy::{self, Object};
use crate::error::{Error, Result};
use crate::registry::Raw;

/// The driver's linker: PTX texts and binaries that use each other's functions and variables become
/// one library.
///
/// ```no_run
/// # use cuda_handles::{Context, Result};
/// # fn example(context: &Context, main: &str, helpers: &str) -> Result<()> {
/// use cuda_handles::{Image, Linker};
///
/// let mut linker = Linker::new(context)?;
/// linker.add("main.ptx", Image::Ptx(main))?.add("helpers.ptx", Image::Ptx(helpers))?;
/// let library = linker.link()?;
/// # Ok(())
/// # }
/// ```
pub struct Linker {
    state: Raw<CUlinkState_st>,
    context: Context,
    /// Lives as long as the state.
    jit: Arc<Jit>,
}

impl Linker {
    /// A linker for the context's device.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    pub fn new(context: &Context) -> Result<Self> {
        Self::with(context, &LoadOptions::default())
    }

    /// A linker with these options of the compiler.
    ///
    /// Calls `cuLinkCreate` (CUDA 6.5).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuLinkCreate")]
    pub fn with(context: &Context, options: &LoadOptions) -> Result<Self> {
        let _current = context.enter()?;
        let jit = Jit::new(options)?;
        let (count, names, values) = jit.raw();
        let mut state: CUlinkState = core::ptr::null_mut();
        // SAFETY: the context is current, the options live as long as the state, and the out
        // pointer is valid.
        let code = unsafe { context.driver().cuLinkCreate(count, names, values, &raw mut state) };
        jit.check(context, Call::cuLinkCreate, code)?;
        Ok(Self { state: Raw::new(state), context: context.clone(), jit: Arc::new(jit) })
    }

    /// Adds an image; the log calls it `name`.
    ///
    /// Calls `cuLinkAddData` (CUDA 6.5).
    ///
    /// # Errors
    /// The image is cut off or of no known kind, it does not compile
    /// ([`Error::Jit`](crate::Error::Jit), with the log), or the driver refuses the call.
    #[doc(alias = "cuLinkAddData")]
    pub fn add(&mut self, name: &str, image: Image<'_>) -> Result<&mut Self> {
        let image = image.check()?;
        let (kind, size) = match &image {
            Checked::Text(text) => (CUjitInputType::CU_JIT_INPUT_PTX, text.as_bytes_with_nul().len()),
            Checked::Binary(bytes) if bytes.starts_with(b"\x7fELF") => {
                (CUjitInputType::CU_JIT_INPUT_CUBIN, bytes.len())
            }
            Checked::Binary(bytes) => (CUjitInputType::CU_JIT_INPUT_FATBINARY, bytes.len()),
        };
        self.add_data(name, kind, image.as_ptr(), size)
    }

    /// Adds an archive of device code, such as the device runtime's `libcudadevrt.a`, from which
    /// the linker takes what it needs.
    ///
    /// Calls `cuLinkAddData` (CUDA 6.5).
    ///
    /// # Errors
    /// The bytes are no archive, a member or an image in one is cut off
    /// ([`Image`](crate::Error::Image)), or the driver refuses the call
    /// ([`Error::Jit`](crate::Error::Jit), with the log).
    #[doc(alias = "CU_JIT_INPUT_LIBRARY")]
    pub fn add_archive(&mut self, name: &str, archive: &[u8]) -> Result<&mut Self> {
        check_archive(archive)?;
        self.add_data(name, CUjitInputType::CU_JIT_INPUT_LIBRARY, archive.as_ptr().cast(), archive.len())
    }

    /// `data` is of this kind and size.
    fn add_data(
        &mut self,
        name: &str,
        kind: CUjitInputType,
        data: *const c_void,
        size: usize,
    ) -> Result<&mut Self> {
        let Ok(name) = CString::new(name) else {
            return Err(Error::Image("its name has a zero byte".into()));
        };
        let _current = self.context.enter()?;
        // SAFETY: state, data and name are alive, the size is the data's, and the driver copies
        // what it keeps.
        let code = unsafe {
            self.context.driver().cuLinkAddData(
                self.state.get(),
                kind,
                data.cast_mut(),
                size,
                name.as_ptr(),
                0,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
            )
        };
        self.jit.check(&self.context, Call::cuLinkAddData, code)?;
        Ok(self)
    }

    /// Links the added images, and loads the result.
    ///
    /// Calls `cuLinkComplete` (CUDA 5.5), and `cuLibraryLoadData` (CUDA 12.0).
    ///
    /// # Errors
    /// Nothing was added; something is missing or there twice ([`Error::Jit`](crate::Error::Jit),
    /// with the log); or the driver refuses the call.
    #[doc(alias = "cuLinkComplete")]
    pub fn link(self) -> Result<Library> {
        let image = self.complete()?;
        Library::load_checked(&self.context, &Checked::Binary(&image), &LoadOptions::default())
    }

    /// Links the added images to a cubin for the context's device, for [`Image::Binary`].
    ///
    /// Calls `cuLinkComplete` (CUDA 5.5).
    ///
    /// # Errors
    /// As [`link`](Self::link).
    pub fn link_to_image(self) -> Result<Vec<u8>> {
        self.complete()
    }

    fn complete(&self) -> Result<Vec<u8>> {
        let _current = self.context.enter()?;
        let (mut image, mut size): (*mut c_void, usize) = (core::ptr::null_mut(), 0);
        // SAFETY: the state is alive and the out pointers are valid.
        let code =
            unsafe { self.context.driver().cuLinkComplete(self.state.get(), &raw mut image, &raw mut size) };
        self.jit.check(&self.context, Call::cuLinkComplete, code)?;
        if image.is_null() || size == 0 {
            return Err(Error::Image("the linker has made nothing of what was added".into()));
        }
        // SAFETY: the driver's image has that size and lives as long as the state.
        Ok(unsafe { core::slice::from_raw_parts(image.cast::<u8>(), size) }.to_vec())
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        destroy::destroy_with(&self.context, Object::Linker(self.state), Some(Arc::clone(&self.jit) as _));
    }
}

impl fmt::Debug for Linker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Linker").field("state", &self.state).finish_non_exhaustive()
    }
}
