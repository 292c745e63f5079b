//! NVIDIA's runtime compiler: CUDA C++ to PTX, without a GPU and without a toolkit.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr::{null, null_mut};

use anyhow::{Context, Result, bail, ensure};
use libloading::Library;

#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

type Program = *mut Opaque;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Text = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
type Name = unsafe extern "C" fn(c_int) -> *const c_char;

/// The compiler, loaded.
pub(crate) struct Nvrtc {
    library: Library,
}

impl Nvrtc {
    /// Loads the compiler's library.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        // SAFETY: the library is the one of NVIDIA's wheel, whose initialisers want nothing of their host.
        let library = unsafe { Library::new(path) }
            .with_context(|| format!("NVIDIA's runtime compiler cannot be loaded from {}", path.display()))?;
        Ok(Self { library })
    }

    /// Compiles `source`, called `name` in messages, to PTX.
    pub(crate) fn compile(&self, name: &str, source: &str, options: &[&str]) -> Result<String> {
        let (source, name) = (CString::new(source)?, CString::new(name)?);
        let options: Vec<_> = options.iter().map(|option| CString::new(*option)).collect::<Result<_, _>>()?;
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = null_mut();
        // SAFETY: the signatures are those of nvrtc.h; all strings live to the end of the call, and there are no headers.
        let created = unsafe {
            self.symbol::<Create>("nvrtcCreateProgram")?(
                &raw mut program,
                source.as_ptr(),
                name.as_ptr(),
                0,
                null(),
                null(),
            )
        };
        self.check("nvrtcCreateProgram", created)?;
        let count = c_int::try_from(options.len())?;
        // SAFETY: the program was created above; the options are as many as said and live to the end of the call.
        let compiled =
            unsafe { self.symbol::<Compile>("nvrtcCompileProgram")?(program, count, options.as_ptr()) };
        let outcome = if compiled == 0 {
            self.text(program, "nvrtcGetPTXSize", "nvrtcGetPTX")
        } else {
            let log = self.text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")?;
            Err(anyhow::anyhow!("{}\n{log}", self.name(compiled)))
        };
        // SAFETY: the program was created above and is not used again.
        let destroyed = unsafe { self.symbol::<Destroy>("nvrtcDestroyProgram")?(&raw mut program) };
        self.check("nvrtcDestroyProgram", destroyed)?;
        outcome
    }

    fn text(&self, program: Program, size: &str, text: &str) -> Result<String> {
        let mut length = 0;
        // SAFETY: the program is alive and the out pointer is valid.
        let sized = unsafe { self.symbol::<Size>(size)?(program, &raw mut length) };
        self.check(size, sized)?;
        let mut bytes = vec![0_u8; length];
        // SAFETY: the buffer has the size that the compiler asked for.
        let written = unsafe { self.symbol::<Text>(text)?(program, bytes.as_mut_ptr().cast()) };
        self.check(text, written)?;
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(String::from_utf8(bytes)?)
    }

    fn check(&self, call: &str, code: c_int) -> Result<()> {
        ensure!(code == 0, "{call} answered {}", self.name(code));
        Ok(())
    }

    fn name(&self, code: c_int) -> String {
        let Ok(name) = self.symbol::<Name>("nvrtcGetErrorString") else { return code.to_string() };
        // SAFETY: the call takes any code and answers with a string that is never freed.
        unsafe { CStr::from_ptr(name(code)) }.to_string_lossy().into_owned()
    }

    fn symbol<T: Copy>(&self, name: &str) -> Result<T> {
        // SAFETY: every name is asked for with the type that nvrtc.h gives it.
        match unsafe { self.library.get::<T>(name) } {
            Ok(symbol) => Ok(*symbol),
            Err(error) => bail!("NVIDIA's runtime compiler lacks {name}: {error}"),
        }
    }
}
