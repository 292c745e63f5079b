//! Finding, checking and installing the driver of the process.

use core::ffi::{c_char, c_int, c_void};
use core::fmt;
use core::ptr::NonNull;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::observe::{self, Interceptor, Observer, Watchers};
use crate::{CUdriverProcAddressQueryResult, CUresult, Call, Driver, Printable, Table, Version, cuuint64_t};

/// The environment variable that names a driver library, in place of the system's.
const VARIABLE: &str = "CUDA_SYS_DRIVER";

#[cfg(windows)]
const SYSTEM: &str = "nvcuda.dll";
#[cfg(not(windows))]
const SYSTEM: &str = "libcuda.so.1";

/// The signature of `cuGetProcAddress_v2`, by which all entries of all sources are looked up.
pub type GetProcAddress = unsafe extern "C" fn(
    *const c_char,
    *mut *mut c_void,
    c_int,
    cuuint64_t,
    *mut CUdriverProcAddressQueryResult,
) -> CUresult;

/// The error of a driver that could not be installed. A failed attempt leaves nothing behind, so it
/// can be repeated.
///
/// `Debug` shows the same sentence as `Display`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The library could not be opened.
    #[error("no CUDA driver: {} cannot be loaded ({}). {}", Printable(file), Printable(reason), advice(file))]
    NotFound {
        /// The file.
        file: String,
        /// The system's reason.
        reason: String,
    },
    /// The environment variable `CUDA_SYS_DRIVER` names a file that is not a usable driver.
    #[error(
        "the environment variable {variable} asks for the CUDA driver `{}`, which cannot be used: {}. Correct the variable, which takes the path \
         of a library, or unset it to use the system's driver",
        Printable(value),
        Reason(reason)
    )]
    Variable {
        /// The variable's name.
        variable: &'static str,
        /// The variable's value.
        value: String,
        /// The reason; never `Variable` itself.
        reason: Box<LoadError>,
    },
    /// The library is not a CUDA driver.
    #[error("{} is not a CUDA driver: it has no symbol {symbol}", Printable(file))]
    NotADriver {
        /// The file.
        file: String,
        /// The missing symbol, which every driver exports.
        symbol: &'static str,
    },
    /// The driver is older than [`Version::BASELINE`].
    #[error(
        "the CUDA driver in {} is too old: version {needed} or newer is needed, it is {found}",
        Printable(file)
    )]
    TooOld {
        /// The driver's origin.
        file: String,
        /// The oldest version supported.
        needed: Version,
        /// The version found.
        found: Version,
    },
    /// The driver lacks a call that every driver of its version has.
    #[error(
        "the CUDA driver in {} says it is version {found} but lacks {}, which drivers have since {}",
        Printable(file),
        call.name(),
        call.since()
    )]
    Incomplete {
        /// The driver's origin.
        file: String,
        /// The missing call.
        call: Call,
        /// The version found.
        found: Version,
    },
    /// The driver did not report its version.
    #[error(
        "the CUDA driver in {} does not tell its version: cuDriverGetVersion answered {result}",
        Printable(file)
    )]
    NoVersion {
        /// The driver's origin.
        file: String,
        /// The result of `cuDriverGetVersion`.
        result: CUresult,
    },
    /// The in-process driver refused to be installed; see [`Loader::refused`].
    #[error("the CUDA driver in {file} cannot be used: {reason}")]
    Refused {
        /// The driver's origin.
        file: String,
        /// The driver's reason.
        reason: String,
    },
    /// The process already has a driver.
    #[error(
        "the process already uses the CUDA driver in {}; it is chosen once, before its first use",
        Printable(file)
    )]
    AlreadyInstalled {
        /// The origin of the driver in use.
        file: String,
    },
}

impl fmt::Debug for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

fn advice(file: &str) -> &'static str {
    match file {
        SYSTEM => {
            "Install NVIDIA's driver, or use the software driver, the crate cuda-soft: \
                   `cuda_soft::loader(cuda_soft::Config::new()).install()?` before the first use of CUDA"
        }
        _ => "Check the path, or use the system's driver",
    }
}

/// The reason of an error, without advice.
struct Reason<'a>(&'a LoadError);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            LoadError::NotFound { reason, .. } => Printable(reason).fmt(formatter),
            other => other.fmt(formatter),
        }
    }
}

enum Source {
    System,
    File(PathBuf),
    /// The file that the environment variable names.
    Variable(OsString),
    InProcess {
        name: String,
        get_proc_address: GetProcAddress,
    },
    Refused {
        name: String,
        reason: String,
    },
}

type Wrap = Box<dyn FnOnce(&mut Table)>;

/// Chooses the driver of the process.
///
/// ```no_run
/// # fn main() -> Result<(), cuda_sys::LoadError> {
/// let driver = cuda_sys::Loader::from_environment().install()?;
/// println!("CUDA driver {} from {}", driver.version(), driver.origin());
/// # Ok(())
/// # }
/// ```
pub struct Loader {
    source: Source,
    wraps: Vec<Wrap>,
    watchers: Watchers,
}

impl Loader {
    fn new(source: Source) -> Self {
        Self { source, wraps: Vec::new(), watchers: Watchers::default() }
    }

    /// NVIDIA's driver, by its name in the system's search path (`libcuda.so.1`, `nvcuda.dll`).
    #[must_use]
    pub fn system() -> Self {
        Self::new(Source::System)
    }

    /// The library named by the environment variable `CUDA_SYS_DRIVER`, or the system's if it is
    /// not set.
    #[must_use]
    pub fn from_environment() -> Self {
        match std::env::var_os(VARIABLE).filter(|path: &OsString| !path.is_empty()) {
            Some(path) => Self::new(Source::Variable(path)),
            None => Self::system(),
        }
    }

    /// The driver library at `path`.
    ///
    /// # Safety
    /// Opening a library runs its initialisers, and its entry points are called with the signatures
    /// of CUDA's headers. It must be NVIDIA's driver or implement its interface.
    #[must_use]
    pub unsafe fn file(path: impl AsRef<Path>) -> Self {
        Self::new(Source::File(path.as_ref().to_owned()))
    }

    /// A driver inside the process, such as cuda-soft. Messages show `name` in place of a file.
    ///
    /// # Safety
    /// Every pointer that `get_proc_address` returns is callable for the life of the process, has
    /// the signature of the call in CUDA's headers of the version passed in, and implements the
    /// driver's interface.
    #[must_use]
    pub unsafe fn in_process(name: &str, get_proc_address: GetProcAddress) -> Self {
        Self::new(Source::InProcess { name: name.to_owned(), get_proc_address })
    }

    /// An in-process driver that cannot be used: the installation fails with `reason`.
    #[must_use]
    pub fn refused(name: &str, reason: impl fmt::Display) -> Self {
        Self::new(Source::Refused { name: name.to_owned(), reason: reason.to_string() })
    }

    /// Lets `wrap` change entries of the table before their first use. It runs once, during the
    /// installation, and must not call [`driver`], which waits for the installation to end. If it
    /// panics, nothing is installed.
    ///
    /// # Safety
    /// An entry put into the table implements the interface of its call.
    #[must_use]
    pub unsafe fn wrap(mut self, wrap: impl FnOnce(&mut Table) + 'static) -> Self {
        self.wraps.push(Box::new(wrap));
        self
    }

    /// Lets `observer` see every call, before entries that [`wrap`](Self::wrap) put in place.
    #[must_use]
    pub fn observe(mut self, observer: &'static dyn Observer) -> Self {
        self.watchers.observer = Some(observer);
        self
    }

    /// Lets `interceptor` answer calls in the driver's place, before entries that
    /// [`wrap`](Self::wrap) put in place. Tests use it to make calls fail.
    ///
    /// # Safety
    /// The answers are true, since all code above the driver relies on them:
    /// - After `CUDA_SUCCESS` the call has had its effect and its results are written.
    /// - A code for completed work, a lost context or an unknown object is true.
    /// - After any other code the call has had no effect.
    #[must_use]
    pub unsafe fn intercept(mut self, interceptor: &'static dyn Interceptor) -> Self {
        self.watchers.interceptor = Some(interceptor);
        self
    }

    /// Loads the driver and installs it as the process's driver.
    ///
    /// The library is never closed. `cuInit` is not called.
    ///
    /// # Errors
    /// - [`LoadError::NotFound`] if the library cannot be opened.
    /// - [`LoadError::NotADriver`], [`LoadError::TooOld`], [`LoadError::Incomplete`] or
    ///   [`LoadError::NoVersion`] if it is not a usable driver; within [`LoadError::Variable`] if
    ///   the environment variable names it.
    /// - [`LoadError::Refused`] for a loader made by [`refused`](Self::refused).
    /// - [`LoadError::AlreadyInstalled`] if the process has a driver already.
    #[doc(alias = "cuGetProcAddress")]
    pub fn install(self) -> Result<&'static Driver, LoadError> {
        let _one_at_a_time = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(driver) = DRIVER.get() {
            return Err(LoadError::AlreadyInstalled { file: driver.origin.clone() });
        }
        let driver = self.load()?;
        Ok(DRIVER.get_or_init(|| driver))
    }

    fn load(self) -> Result<Driver, LoadError> {
        match self.source {
            Source::System => Self::finish(self.wraps, self.watchers, open(Path::new(SYSTEM))?),
            Source::File(path) => Self::finish(self.wraps, self.watchers, open(&path)?),
            Source::InProcess { name, get_proc_address } => {
                Self::finish(self.wraps, self.watchers, (name, get_proc_address))
            }
            Source::Refused { name, reason } => Err(LoadError::Refused { file: name, reason }),
            Source::Variable(value) => open(Path::new(&value))
                .and_then(|opened| Self::finish(self.wraps, self.watchers, opened))
                .map_err(|reason| LoadError::Variable {
                    variable: VARIABLE,
                    value: value.to_string_lossy().into_owned(),
                    reason: Box::new(reason),
                }),
        }
    }

    fn finish(
        wraps: Vec<Wrap>,
        watchers: Watchers,
        (origin, get_proc_address): (String, GetProcAddress),
    ) -> Result<Driver, LoadError> {
        let version = version(&origin, get_proc_address)?;
        // A driver has no call that is newer than itself, and refuses to look for one. The software
        // driver would report that as a refusal (`CUDA_SOFT_EXPLAIN`).
        let look_up = |call: Call| match call.since() <= version {
            true => find(get_proc_address, call.symbol(), call.since()),
            false => None,
        };
        // SAFETY: the caller who made the loader promised that the source implements the driver's
        // interface; the system's driver does.
        let table = unsafe { Table::look_up(version, look_up) };
        let mut table =
            table.map_err(|call| LoadError::Incomplete { file: origin.clone(), call, found: version })?;
        wraps.into_iter().for_each(|wrap| wrap(&mut table));
        if watchers.observer.is_some() || watchers.interceptor.is_some() {
            observe::observe(&mut table, watchers);
        }
        Ok(Driver { table, version, origin })
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.source {
            Source::System => SYSTEM.to_owned(),
            Source::File(path) => path.display().to_string(),
            Source::Variable(value) => value.to_string_lossy().into_owned(),
            Source::InProcess { name, .. } | Source::Refused { name, .. } => name.clone(),
        };
        formatter.debug_struct("Loader").field("source", &source).finish_non_exhaustive()
    }
}

/// Opens a library for good and finds the symbol by which all others are looked up.
fn open(path: &Path) -> Result<(String, GetProcAddress), LoadError> {
    let file = path.display().to_string();
    // SAFETY: the caller of `Loader::file` promised it; the system's driver is NVIDIA's.
    let library = unsafe { libloading::Library::new(path) }
        .map_err(|error| LoadError::NotFound { file: file.clone(), reason: innermost(&error) })?;
    let symbol = |name: &'static str| {
        // SAFETY: the address of any exported symbol can be read as an untyped pointer.
        let found = unsafe { library.get::<*mut c_void>(name) }.ok()?;
        NonNull::new(*found)
    };
    let outcome = match symbol("cuGetProcAddress_v2") {
        // SAFETY: this name has had this one layout in every driver since 12.0.
        Some(pointer) => Ok(unsafe { core::mem::transmute::<NonNull<c_void>, GetProcAddress>(pointer) }),
        None => Err(old_or_foreign(&file, symbol("cuDriverGetVersion"))),
    };
    if outcome.is_ok() {
        core::mem::forget(library);
    }
    outcome.map(|pointer| (file, pointer))
}

/// The system's reason; the outer error only says that opening failed.
fn innermost(error: &dyn core::error::Error) -> String {
    match error.source() {
        Some(source) => innermost(source),
        None => error.to_string(),
    }
}

/// The error of a library without `cuGetProcAddress_v2`: a driver before 12.0 reports its version,
/// another library does not.
fn old_or_foreign(file: &str, get_version: Option<NonNull<c_void>>) -> LoadError {
    let Some(pointer) = get_version else {
        return LoadError::NotADriver { file: file.to_owned(), symbol: "cuDriverGetVersion" };
    };
    // SAFETY: the call has had this one layout in every driver.
    let call = unsafe { core::mem::transmute::<NonNull<c_void>, GetVersion>(pointer) };
    match read_version(file, call) {
        Ok(found) if found < Version::BASELINE => too_old(file, found),
        Ok(_) => LoadError::NotADriver { file: file.to_owned(), symbol: "cuGetProcAddress_v2" },
        Err(error) => error,
    }
}

fn too_old(file: &str, found: Version) -> LoadError {
    LoadError::TooOld { file: file.to_owned(), needed: Version::BASELINE, found }
}

type GetVersion = unsafe extern "C" fn(*mut c_int) -> CUresult;

fn read_version(file: &str, call: GetVersion) -> Result<Version, LoadError> {
    let mut raw = 0;
    // SAFETY: the out pointer is valid.
    let result = unsafe { call(&raw mut raw) };
    if result.is_success() {
        Ok(Version::from_raw(raw))
    } else {
        Err(LoadError::NoVersion { file: file.to_owned(), result })
    }
}

fn version(file: &str, get_proc_address: GetProcAddress) -> Result<Version, LoadError> {
    let call = Call::cuDriverGetVersion;
    let pointer = find(get_proc_address, call.symbol(), call.since())
        .ok_or(LoadError::NotADriver { file: file.to_owned(), symbol: "cuDriverGetVersion" })?;
    // SAFETY: looked up with the version whose layout this is.
    let found = read_version(file, unsafe { core::mem::transmute::<NonNull<c_void>, GetVersion>(pointer) })?;
    if found < Version::BASELINE { Err(too_old(file, found)) } else { Ok(found) }
}

/// `CU_GET_PROC_ADDRESS_LEGACY_STREAM`: the null stream is the legacy default stream.
const LEGACY_STREAM: cuuint64_t = 1;

fn find(
    get_proc_address: GetProcAddress,
    symbol: &core::ffi::CStr,
    since: Version,
) -> Option<NonNull<c_void>> {
    let mut pointer = core::ptr::null_mut();
    let mut status = CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
    // SAFETY: the symbol is a C string and both out pointers are valid.
    let result = unsafe {
        get_proc_address(symbol.as_ptr(), &raw mut pointer, since.as_raw(), LEGACY_STREAM, &raw mut status)
    };
    let there = result.is_success() && status == CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
    NonNull::new(pointer).filter(|_| there)
}

static DRIVER: OnceLock<Driver> = OnceLock::new();
static INSTALLING: Mutex<()> = Mutex::new(());

/// The driver of the process. If none is installed, loads and installs
/// [`Loader::from_environment`]'s.
///
/// # Errors
/// Those of [`Loader::install`]. The next call tries again.
#[inline]
pub fn driver() -> Result<&'static Driver, LoadError> {
    match DRIVER.get() {
        Some(driver) => Ok(driver),
        None => load_default(),
    }
}

/// The driver of the process, if one is installed. Loads nothing.
#[must_use]
pub fn installed() -> Option<&'static Driver> {
    DRIVER.get()
}

#[cold]
fn load_default() -> Result<&'static Driver, LoadError> {
    match Loader::from_environment().install() {
        // Another thread has installed it meanwhile.
        Err(LoadError::AlreadyInstalled { file }) => DRIVER.get().ok_or(LoadError::AlreadyInstalled { file }),
        outcome => outcome,
    }
}
