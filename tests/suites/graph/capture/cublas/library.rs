//! cuBLAS: where its library is, and the few calls of it that the tests make.

use core::error::Error;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::{ManuallyDrop, forget};
use core::ptr;
use std::path::{Path, PathBuf};

use cuda_handles::Context;
use cuda_nvrtc::internal::{Process, entries, folders};
use cuda_sys::{CUdeviceptr, CUstream};
use cuda_tests::is_soft;
use libloading::Library;

/// Names the library or its folder. No other place is searched then.
const VARIABLE: &str = "CUDA_CUBLAS";

/// `cublasHandle_t`.
type RawHandle = *mut c_void;

/// `cublasOperation_t`: the matrix as it is.
const CUBLAS_OP_N: c_int = 0;

/// The entry points, with the signatures of cublas_v2.h.
struct Api {
    version: unsafe extern "C" fn(RawHandle, *mut c_int) -> c_int,
    status_string: unsafe extern "C" fn(c_int) -> *const c_char,
    create: unsafe extern "C" fn(*mut RawHandle) -> c_int,
    destroy: unsafe extern "C" fn(RawHandle) -> c_int,
    set_stream: unsafe extern "C" fn(RawHandle, CUstream) -> c_int,
    set_workspace: unsafe extern "C" fn(RawHandle, CUdeviceptr, usize) -> c_int,
    sgemm: unsafe extern "C" fn(
        RawHandle,
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        *const f32,
        CUdeviceptr,
        c_int,
        CUdeviceptr,
        c_int,
        *const f32,
        CUdeviceptr,
        c_int,
    ) -> c_int,
}

impl Api {
    /// Opens a library, which is never closed: it has kernels in the driver.
    fn open(path: &Path) -> Result<Self, String> {
        // The system's reason is the source of libloading's error.
        let reason = |error: &libloading::Error| error.source().map(ToString::to_string);
        let words = |error| format!("{}: {}", path.display(), reason(&error).unwrap_or(error.to_string()));
        // The loader does not always find the second part beside the first. A library that is
        // already open is found by its name.
        let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).map(entries);
        for part in beside.into_iter().flatten().filter(|part| has_name(part, "libcublasLt.so.")) {
            // SAFETY: a library with this name beside cuBLAS belongs to it.
            forget(unsafe { Library::new(part) });
        }
        // SAFETY: a library with this name is cuBLAS, or was named by the environment.
        let library = ManuallyDrop::new(unsafe { Library::new(path) }.map_err(words)?);
        // SAFETY: each symbol has the type that cublas_v2.h gives it.
        unsafe {
            Ok(Self {
                version: *library.get("cublasGetVersion_v2").map_err(words)?,
                status_string: *library.get("cublasGetStatusString").map_err(words)?,
                create: *library.get("cublasCreate_v2").map_err(words)?,
                destroy: *library.get("cublasDestroy_v2").map_err(words)?,
                set_stream: *library.get("cublasSetStream_v2").map_err(words)?,
                set_workspace: *library.get("cublasSetWorkspace_v2").map_err(words)?,
                sgemm: *library.get("cublasSgemm_v2").map_err(words)?,
            })
        }
    }
}

/// A handle of cuBLAS, for one thread at a time.
pub(super) struct Cublas {
    api: Api,
    context: Context,
    raw: RawHandle,
}

// SAFETY: a handle belongs to a context, not to a thread.
unsafe impl Send for Cublas {}

/// The operands of `c = alpha * a * b + beta * c`, as cuBLAS has them: column after column.
pub(super) struct Operands {
    /// The rows of `a` and `c`, the columns of `b` and `c`, and the others.
    pub(super) sizes: [usize; 3],
    pub(super) alpha: f32,
    pub(super) beta: f32,
    pub(super) a: CUdeviceptr,
    pub(super) b: CUdeviceptr,
    pub(super) c: CUdeviceptr,
    pub(super) workspace: (CUdeviceptr, usize),
}

impl Cublas {
    /// A handle, or the reason why there is none.
    pub(super) fn new(context: &Context) -> Result<Self, String> {
        if is_soft() {
            return Err("cuBLAS needs a GPU".to_owned());
        }
        let mut cublas = Self { api: open(context)?, context: context.clone(), raw: ptr::null_mut() };
        let (create, raw) = (cublas.api.create, &raw mut cublas.raw);
        // SAFETY: the out pointer is valid.
        let status = context.with_current(|| unsafe { create(raw) }).unwrap();
        cublas.expect(status, "cublasCreate_v2");
        let mut version = 0;
        // SAFETY: the handle is alive and the out pointer valid.
        let status = unsafe { (cublas.api.version)(cublas.raw, &raw mut version) };
        cublas.expect(status, "cublasGetVersion_v2");
        println!("cuBLAS {version} on driver {}", context.driver().version());
        Ok(cublas)
    }

    /// Enqueues a product on a stream.
    ///
    /// # Safety
    /// The stream and the memory of the operands live as long as the work, and have these sizes.
    pub(super) unsafe fn multiply(&self, stream: CUstream, operands: &Operands) {
        let Api { set_stream, set_workspace, sgemm, .. } = self.api;
        let Operands { sizes, alpha, beta, a, b, c, workspace } = operands;
        let [m, n, k] = sizes.map(|size| c_int::try_from(size).unwrap());
        let calls = || {
            // SAFETY: handle and stream are alive.
            self.expect(unsafe { set_stream(self.raw, stream) }, "cublasSetStream_v2");
            // SAFETY: the caller's promise. The stream is set before, since that takes the
            // workspace away.
            self.expect(
                unsafe { set_workspace(self.raw, workspace.0, workspace.1) },
                "cublasSetWorkspace_v2",
            );
            let none = CUBLAS_OP_N;
            // SAFETY: the caller's promise; the factors are on the host and read before the return.
            let status = unsafe { sgemm(self.raw, none, none, m, n, k, alpha, *a, m, *b, k, beta, *c, m) };
            self.expect(status, "cublasSgemm_v2");
        };
        self.context.with_current(calls).unwrap();
    }

    #[track_caller]
    fn expect(&self, status: c_int, call: &str) {
        if status != 0 {
            // SAFETY: the call takes any status and returns a C string that is never freed.
            let words = unsafe { CStr::from_ptr((self.api.status_string)(status)) };
            panic!("{call} answered {status}: {}", words.to_string_lossy());
        }
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: the handle is alive, if it was made, and not used again.
        let destroy = || unsafe { (self.api.destroy)(self.raw) };
        if !self.raw.is_null() {
            let status = self.context.with_current(destroy);
            assert!(std::thread::panicking() || status == Ok(0), "cublasDestroy_v2 answered {status:?}");
        }
    }
}

/// Opens the first library that can be opened, of those that are not newer than the driver.
fn open(context: &Context) -> Result<Api, String> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from) {
        let inside = libraries(&named, context).next();
        let api = Api::open(&inside.unwrap_or(named));
        return Ok(api.unwrap_or_else(|error| panic!("{VARIABLE} names no cuBLAS that can be used: {error}")));
    }
    let by_name = names(context).map(PathBuf::from);
    let mut failures = Vec::new();
    for path in by_name.chain(folders(&Process).iter().flat_map(|folder| libraries(folder, context))) {
        match Api::open(&path) {
            Ok(api) => return Ok(api),
            Err(failure) => failures.push(failure),
        }
    }
    Err(format!("no cuBLAS was found, and {VARIABLE} names none ({})", failures.join("; ")))
}

/// The names of the library, the newest that the driver can run first.
fn names(context: &Context) -> impl Iterator<Item = String> {
    let newest = context.driver().version().major();
    (12..=newest).rev().map(|major| format!("libcublas.so.{major}"))
}

/// The libraries in a folder.
fn libraries(folder: &Path, context: &Context) -> impl Iterator<Item = PathBuf> {
    names(context).map(|name| folder.join(name)).filter(|path| path.exists())
}

fn has_name(path: &Path, start: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
}
