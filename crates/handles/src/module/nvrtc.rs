//! CUDA C++ compiled while the program runs: the crate [cuda-nvrtc](cuda_nvrtc) for the device of a
//! context. Feature `nvrtc`.
//!
//! ```no_run
//! # fn example(context: &cuda_handles::Context) -> cuda_handles::Result<()> {
//! use cuda_handles::nvrtc::Program;
//! use cuda_handles::{Image, Library};
//!
//! let source = "template <class T> __global__ void twice(T *x) { x[threadIdx.x] *= 2; }";
//! let program = Program::new("twice.cu", source).expression("twice<float>");
//! let compiled = context.compile(&program)?;
//! let library = Library::load(context, Image::from(&*compiled))?;
//! let twice = library.kernel(compiled.lowered_name("twice<float>")?)?;
//! # Ok(())
//! # }
//! ```
//!
//! The compiler's library is looked for when a program is first compiled: see [`Compiler::load`].

use std::borrow::Cow;
use std::sync::Arc;

pub use cuda_nvrtc::{Arch, Compiled, Compiler, Error, Program, Standard, Target, Version};

use super::image::Image;
use crate::context::Context;
use crate::error::Result;

impl From<Error> for crate::error::Error {
    fn from(error: Error) -> Self {
        Self::Nvrtc(Box::new(error))
    }
}

impl<'a> From<&'a Compiled> for Image<'a> {
    /// The PTX or the cubin that was asked for.
    fn from(compiled: &'a Compiled) -> Self {
        match compiled.cubin() {
            Some(cubin) => Self::Binary(cubin),
            None => Self::Ptx(compiled.ptx().unwrap_or_default()),
        }
    }
}

impl Context {
    /// Compiles CUDA C++ for this context's device. A program without a [target](Program::target)
    /// becomes PTX for the device's compute capability, or for the newest before it that the
    /// compiler knows. The same program with the same options is compiled once; see
    /// [`Compiler::compile`].
    ///
    /// Prefers a compiler whose major version is no newer than the driver's. Makes no driver call.
    ///
    /// # Errors
    /// [`Error::Nvrtc`](crate::Error::Nvrtc) if there is no compiler (the error names everything
    /// that was tried), the program does not compile (with the compiler's log), or the PTX is newer
    /// than the driver (with advice). [`Error::ContextLost`](crate::Error::ContextLost).
    #[doc(alias = "nvrtcCompileProgram")]
    pub fn compile(&self, program: &Program) -> Result<Arc<Compiled>> {
        self.ensure_usable()?;
        let driver = self.driver().version();
        let driver = Version::new(driver.major().unsigned_abs(), driver.minor().unsigned_abs());
        let compiler = Compiler::load_for(driver)?;
        let program = match program.wanted() {
            Target::Unnamed => {
                let arch = compiler.best_arch(self.limits().compute_capability)?;
                Cow::Owned(program.clone().target(Target::Ptx(arch)))
            }
            _ => Cow::Borrowed(program),
        };
        let compiled = compiler.compile(&program)?;
        compiled.check_driver(driver)?;
        Ok(compiled)
    }
}
