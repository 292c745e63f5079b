//! The compiler: finding, loading and running it.

use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use crate::api::{Api, Fill, Raw, Size};
use crate::arch::{Arch, Target};
use crate::cache::Cache;
use crate::compiled::Compiled;
use crate::error::{Error, Result};
use crate::program::Program;
use crate::search::{self, Process};
use crate::version::Version;

struct Inner {
    api: Api,
    version: Version,
    path: PathBuf,
    cache: Cache,
}

/// NVIDIA's runtime compiler. Clones share it. It is thread-safe, and threads compile in parallel.
#[derive(Clone)]
pub struct Compiler(Arc<Inner>);

/// The loaded compilers, by the driver's major version.
static LOADED: Mutex<Vec<(Option<u32>, Compiler)>> = Mutex::new(Vec::new());

impl Compiler {
    /// Finds and loads the compiler, once in a process. A failed attempt can be repeated.
    ///
    /// The search goes through these places:
    /// 1. the file or folder named by the environment variable `CUDA_NVRTC`; if it is set, no other
    ///    place;
    /// 2. the system's search path for libraries (`LD_LIBRARY_PATH`);
    /// 3. the toolkits named by `CUDA_HOME`, `CUDA_PATH` or `CUDA_ROOT`, and the usual folders;
    /// 4. the Python environments named by `VIRTUAL_ENV` or `CONDA_PREFIX`, the one of `python3` in
    ///    `PATH` (all versions of pyenv, if its shims are there), the user's and the system's, for
    ///    the wheels `nvidia-cuda-nvrtc-cu12` and `nvidia-cuda-nvrtc`.
    ///
    /// # Errors
    /// [`Error::NotFound`] lists all places that were tried. [`Error::Named`] if `CUDA_NVRTC` does
    /// not name a usable NVRTC.
    pub fn load() -> Result<Self> {
        Self::load_once(None)
    }

    /// [`load`](Self::load) for a driver. A compiler of a newer major version than the driver's is
    /// the last choice, since the driver does not read its PTX.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    pub fn load_for(driver: Version) -> Result<Self> {
        Self::load_once(Some(driver.major))
    }

    fn load_once(major: Option<u32>) -> Result<Self> {
        // Held while libraries are opened, which does not wait for other threads.
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, compiler)) = loaded.iter().find(|(known, _)| *known == major) {
            return Ok(compiler.clone());
        }
        let found = Self::find(major)?;
        let same = loaded.iter().find(|(_, compiler)| compiler.origin() == found.origin());
        let compiler = same.map_or(found, |(_, compiler)| compiler.clone());
        loaded.push((major, compiler.clone()));
        Ok(compiler)
    }

    fn find(major: Option<u32>) -> Result<Self> {
        if let Some(path) = search::named(&Process) {
            // SAFETY: setting the variable is the promise that the library is NVRTC.
            return unsafe { Self::try_open(&path) }
                .map_err(|reason| Error::Named { path: path.display().to_string(), reason });
        }
        let (search::Found { libraries, empty }, mut tried) = (search::find(&Process, major), Vec::new());
        for path in libraries {
            // SAFETY: a library of this name, where CUDA is installed, is NVRTC.
            match unsafe { Self::try_open(&path) } {
                Ok(compiler) => return Ok(compiler),
                Err(reason) => tried.push((path.display().to_string(), reason)),
            }
        }
        tried.extend(empty.into_iter().map(|root| (root.display().to_string(), "has none".to_owned())));
        Err(Error::NotFound { tried })
    }

    /// Loads the compiler from a library.
    ///
    /// # Safety
    /// Opening a library runs its initialisers, and its entry points are called with the signatures
    /// of nvrtc.h. It must be NVIDIA's.
    ///
    /// # Errors
    /// [`Error::Library`] if it cannot be opened, is not NVRTC, or is older than 12.0.
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        // SAFETY: the caller's promise.
        unsafe { Self::try_open(path) }
            .map_err(|reason| Error::Library { path: path.display().to_string(), reason })
    }

    /// # Safety
    /// As [`open`](Self::open).
    unsafe fn try_open(path: &Path) -> Result<Self, String> {
        // SAFETY: the caller's promise.
        let (api, version) = unsafe { Api::open(path) }?;
        Ok(Self(Arc::new(Inner { api, version, path: path.to_owned(), cache: Cache::default() })))
    }

    /// The version of the compiler.
    #[doc(alias = "nvrtcVersion")]
    #[must_use]
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// The path of its library.
    #[must_use]
    pub fn origin(&self) -> &Path {
        &self.0.path
    }

    /// The architectures that it supports, the oldest first.
    ///
    /// # Errors
    /// [`Error::Call`] if the compiler fails.
    #[doc(alias = "nvrtcGetSupportedArchs")]
    pub fn architectures(&self) -> Result<Vec<Arch>> {
        let api = &self.0.api;
        let mut count = 0;
        // SAFETY: the out pointer is valid.
        self.check("nvrtcGetNumSupportedArchs", unsafe { (api.count_archs)(&raw mut count) })?;
        let mut numbers = vec![0 as c_int; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the array has room for as many numbers.
        self.check("nvrtcGetSupportedArchs", unsafe { (api.archs)(numbers.as_mut_ptr()) })?;
        let mut archs: Vec<Arch> =
            numbers.into_iter().map(|number| Arch::from_number(number.unsigned_abs())).collect();
        archs.sort();
        Ok(archs)
    }

    /// The newest supported architecture whose PTX runs on a device of this compute capability.
    ///
    /// # Errors
    /// [`Error::NoArch`] if there is none. [`Error::Call`] if the compiler fails.
    pub fn best_arch(&self, capability: (u32, u32)) -> Result<Arch> {
        let known = self.architectures()?;
        let device = Arch::new(capability.0, capability.1);
        let best = known.iter().copied().rfind(|arch| *arch <= device);
        best.ok_or(Error::NoArch { compiler: self.version(), device: capability, known })
    }

    /// Compiles a program, or returns it from the cache. A program is in the cache if source,
    /// headers, expressions, target and options are equal. The cache holds up to 256 programs as
    /// long as a handle of the compiler exists.
    ///
    /// Files that a program includes from folders are not compared. After a change of them, call
    /// [`forget`](Self::forget). Compiling a program again gives the same code; comments in its PTX
    /// may have other numbers, since the compiler counts its calls.
    ///
    /// # Errors
    /// - [`Error::Compile`] with the compiler's log, if the program does not compile.
    /// - [`Error::Zero`] if a text contains a zero byte.
    /// - [`Error::Call`] if the compiler fails otherwise.
    #[doc(alias = "nvrtcCompileProgram")]
    pub fn compile(&self, program: &Program) -> Result<Arc<Compiled>> {
        match self.0.cache.find(program) {
            Some(known) => Ok(known),
            None => Ok(self.0.cache.keep(program, self.compile_now(program)?)),
        }
    }

    /// Empties the cache. Programs in use stay valid.
    pub fn forget(&self) {
        self.0.cache.clear();
    }

    fn compile_now(&self, program: &Program) -> Result<Compiled> {
        let running = Running::new(self, program)?;
        let expressions = texts("an expression", program.expressions())?;
        for expression in &expressions {
            // SAFETY: the program is live, and the expression a C string.
            let code = unsafe { (self.0.api.add_expression)(running.raw, expression.as_ptr()) };
            self.check("nvrtcAddNameExpression", code)?;
        }
        running.compile(program)?;
        let api = &self.0.api;
        let is_cubin = matches!(program.wanted(), Target::Cubin(_));
        let cubin = || running.bytes("nvrtcGetCUBIN", api.cubin_size, api.cubin);
        let ptx = || running.text("nvrtcGetPTX", api.ptx_size, api.ptx);
        Ok(Compiled {
            cubin: is_cubin.then(cubin).transpose()?,
            ptx: (!is_cubin).then(ptx).transpose()?,
            log: running.log()?,
            names: running.names(program.expressions(), &expressions)?,
            compiler: self.version(),
        })
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(Error::Call { call, code: self.0.api.words(code) }) }
    }
}

impl fmt::Debug for Compiler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NVRTC {} from {}", self.version(), self.origin().display())
    }
}

/// A program in the compiler, destroyed when dropped.
struct Running<'c> {
    compiler: &'c Compiler,
    raw: Raw,
}

impl<'c> Running<'c> {
    fn new(compiler: &'c Compiler, program: &Program) -> Result<Self> {
        let (source, name) =
            (text("the source", program.source())?, text("the name of the program", program.name())?);
        let (names, headers): (Vec<_>, Vec<_>) = program.headers().iter().cloned().unzip();
        let (names, headers) = (texts("the name of a header", &names)?, texts("a header", &headers)?);
        let (names, headers) = (pointers(&names), pointers(&headers));
        let mut raw = null_mut();
        // SAFETY: all texts are C strings that outlive the call; there are as many names as
        // headers.
        let code = unsafe {
            (compiler.0.api.create)(
                &raw mut raw,
                source.as_ptr(),
                name.as_ptr(),
                count(&headers),
                headers.as_ptr(),
                names.as_ptr(),
            )
        };
        compiler.check("nvrtcCreateProgram", code)?;
        Ok(Self { compiler, raw })
    }

    fn compile(&self, program: &Program) -> Result<()> {
        let mut options = texts("an option", program.options())?;
        if let Some(target) = program.wanted().option() {
            options.push(text("an option", &target)?);
        }
        let options = pointers(&options);
        let api = &self.compiler.0.api;
        // SAFETY: the program is live; the options outlive the call, and `count` is their number.
        let code = unsafe { (api.compile)(self.raw, count(&options), options.as_ptr()) };
        if code == 0 {
            return Ok(());
        }
        Err(Error::Compile { name: program.name().to_owned(), code: api.words(code), log: self.log()? })
    }

    fn log(&self) -> Result<String> {
        let api = &self.compiler.0.api;
        Ok(self.text("nvrtcGetProgramLog", api.log_size, api.log)?.trim_end().to_owned())
    }

    fn names(&self, expressions: &[String], texts: &[CString]) -> Result<Vec<(String, String)>> {
        let name = |(expression, text): (&String, &CString)| {
            let mut name = core::ptr::null();
            // SAFETY: the program was compiled with this expression; the out pointer is valid.
            let code = unsafe { (self.compiler.0.api.lowered_name)(self.raw, text.as_ptr(), &raw mut name) };
            self.compiler.check("nvrtcGetLoweredName", code)?;
            // SAFETY: the name is a C string that lives as long as the program.
            Ok((expression.clone(), unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()))
        };
        expressions.iter().zip(texts).map(name).collect()
    }

    /// An output as text, without the final zero byte.
    fn text(&self, call: &'static str, size: Size, fill: Fill) -> Result<String> {
        let bytes = self.bytes(call, size, fill)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    fn bytes(&self, call: &'static str, size: Size, fill: Fill) -> Result<Vec<u8>> {
        let mut length = 0;
        // SAFETY: the program is live and the out pointer valid.
        self.compiler.check(call, unsafe { size(self.raw, &raw mut length) })?;
        let mut bytes = vec![0_u8; length];
        // SAFETY: the program is live, and the buffer has the size that the compiler returned.
        self.compiler.check(call, unsafe { fill(self.raw, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is live, and is not used again.
        unsafe { (self.compiler.0.api.destroy)(&raw mut self.raw) };
    }
}

fn text(what: &'static str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|error| Error::Zero { what, position: error.nul_position() })
}

fn texts(what: &'static str, all: &[String]) -> Result<Vec<CString>> {
    all.iter().map(|one| text(what, one)).collect()
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

fn count(pointers: &[*const c_char]) -> c_int {
    c_int::try_from(pointers.len()).unwrap_or(c_int::MAX)
}
