//! The compiler, loaded.

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

/// NVIDIA's runtime compiler. Clones share it; any thread may use it, several at a time.
#[derive(Clone)]
pub struct Compiler(Arc<Inner>);

/// The compilers found for a driver's major number.
static LOADED: Mutex<Vec<(Option<u32>, Compiler)>> = Mutex::new(Vec::new());

impl Compiler {
    /// Finds the compiler and loads it, once in a process; a failed try can be repeated.
    ///
    /// The library is looked for
    /// 1. where the environment variable `CUDA_NVRTC` says (a file, or the folder that has it), and
    ///    then nowhere else;
    /// 2. where the system finds libraries, as for `LD_LIBRARY_PATH`;
    /// 3. in the toolkits that `CUDA_HOME`, `CUDA_PATH` or `CUDA_ROOT` name, and in the usual
    ///    places;
    /// 4. in the Python environments that `VIRTUAL_ENV` or `CONDA_PREFIX` name, the user's and the
    ///    system's, where the wheels `nvidia-cuda-nvrtc-cu12` and `nvidia-cuda-nvrtc` put it.
    ///
    /// # Errors
    /// It is nowhere ([`Error::NotFound`] names all that was tried), or what `CUDA_NVRTC` names is
    /// none.
    pub fn load() -> Result<Self> {
        Self::load_once(None)
    }

    /// As [`load`](Self::load), for a driver: a compiler whose major number is newer than the
    /// driver's is taken only where there is no other, since the driver does not read its PTX.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_for(driver: Version) -> Result<Self> {
        Self::load_once(Some(driver.major))
    }

    fn load_once(major: Option<u32>) -> Result<Self> {
        // Held while libraries are opened: they wait for nobody.
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
            // SAFETY: whoever sets the variable answers for the library's being NVRTC.
            return unsafe { Self::try_open(&path) }
                .map_err(|reason| Error::Named { path: path.display().to_string(), reason });
        }
        let (search::Found { libraries, empty }, mut tried) = (search::find(&Process, major), Vec::new());
        for path in libraries {
            // SAFETY: a library of this name, in a place where CUDA is installed, is NVRTC.
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
    /// of nvrtc.h: it must be NVIDIA's.
    ///
    /// # Errors
    /// It cannot be opened, is no NVRTC, or is older than 12.0.
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        // SAFETY: the caller's promise.
        unsafe { Self::try_open(path) }
            .map_err(|reason| Error::Library { path: path.display().to_string(), reason })
    }

    /// # Safety
    /// As for [`open`](Self::open).
    unsafe fn try_open(path: &Path) -> Result<Self, String> {
        // SAFETY: the caller's promise.
        let (api, version) = unsafe { Api::open(path) }?;
        Ok(Self(Arc::new(Inner { api, version, path: path.to_owned(), cache: Cache::default() })))
    }

    /// Its version.
    #[doc(alias = "nvrtcVersion")]
    #[must_use]
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// The library that it was loaded from.
    #[must_use]
    pub fn origin(&self) -> &Path {
        &self.0.path
    }

    /// The architectures that it compiles for, the oldest first.
    ///
    /// # Errors
    /// What the compiler answers.
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

    /// The newest architecture that it compiles for and that a device of this compute capability
    /// runs as PTX.
    ///
    /// # Errors
    /// There is none ([`Error::NoArch`]), or what the compiler answers.
    pub fn best_arch(&self, capability: (u32, u32)) -> Result<Arch> {
        let known = self.architectures()?;
        let device = Arch::new(capability.0, capability.1);
        let best = known.iter().copied().rfind(|arch| *arch <= device);
        best.ok_or(Error::NoArch { compiler: self.version(), device: capability, known })
    }

    /// Compiles a program, or gives what came of it before: the same source, headers, expressions,
    /// target and options give the same result. Up to 256 programs are kept in memory, as long as a
    /// handle of the compiler. Files that a program includes from folders are not compared: after a
    /// change of them [`forget`](Self::forget) what was compiled. Compiled anew, a program gives
    /// the same code; comments in PTX may have other numbers, as the compiler counts calls through
    /// all programs.
    ///
    /// # Errors
    /// The program does not compile ([`Error::Compile`], with the compiler's log), a text has a
    /// zero byte, or what the compiler answers.
    #[doc(alias = "nvrtcCompileProgram")]
    pub fn compile(&self, program: &Program) -> Result<Arc<Compiled>> {
        match self.0.cache.find(program) {
            Some(known) => Ok(known),
            None => Ok(self.0.cache.keep(program, self.compile_now(program)?)),
        }
    }

    /// Forgets all that was compiled. What somebody holds stays as it is.
    pub fn forget(&self) {
        self.0.cache.clear();
    }

    fn compile_now(&self, program: &Program) -> Result<Compiled> {
        let running = Running::new(self, program)?;
        let expressions = texts("an expression", program.expressions())?;
        for expression in &expressions {
            // SAFETY: the program is there, and the expression a C string.
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

/// A program of the compiler, until it is dropped.
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
        // SAFETY: all texts are C strings that live to the end of the call; there are as many names
        // as headers.
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
        // SAFETY: the program is there; the options are as many as said, and live to the end of the
        // call.
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
            // SAFETY: the program was compiled with this expression, and the out pointer is valid.
            let code = unsafe { (self.compiler.0.api.lowered_name)(self.raw, text.as_ptr(), &raw mut name) };
            self.compiler.check("nvrtcGetLoweredName", code)?;
            // SAFETY: the name is a C string that lives as long as the program.
            Ok((expression.clone(), unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()))
        };
        expressions.iter().zip(texts).map(name).collect()
    }

    /// A text, without the zero byte at its end.
    fn text(&self, call: &'static str, size: Size, fill: Fill) -> Result<String> {
        let bytes = self.bytes(call, size, fill)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    fn bytes(&self, call: &'static str, size: Size, fill: Fill) -> Result<Vec<u8>> {
        let mut length = 0;
        // SAFETY: the program is there and the out pointer valid.
        self.compiler.check(call, unsafe { size(self.raw, &raw mut length) })?;
        let mut bytes = vec![0_u8; length];
        // SAFETY: the program is there, and the buffer has the size that the compiler asked for.
        self.compiler.check(call, unsafe { fill(self.raw, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is there, and is not used again.
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
