//! NCCL: the search, and the loaded library.

use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use core::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuda_nvrtc::internal::{NCCL, Process};
use libloading::Library;

use crate::api::{Api, OLDEST, RawCommunicator, SUCCESS};
use crate::error::{Error, Result};
use crate::stand_in;

/// The environment variable that must be `0`: whether NCCL uses NVLink multicast (NVLink SHARP).
///
/// Multicast takes resources of the fabric that all processes on the devices share, and a process
/// that is ended while it has some may leave the devices unusable. So nothing here lets NCCL use
/// it. NCCL reads the variable in its own threads, and no program can set variables safely while
/// other threads run: so whoever starts the program sets it, and [`Nccl::load`] refuses to go on
/// without.
pub const MULTICAST: &str = "NCCL_NVLS_ENABLE";

/// A loaded NCCL. Clones share it. The library is never closed: it has kernels in the driver.
#[derive(Clone)]
pub struct Nccl(Arc<Loaded>);

struct Loaded {
    api: Api,
    version: c_int,
    origin: String,
}

impl Nccl {
    /// Finds and loads the library:
    /// 1. the file, or the newest in the folder, that the environment variable `CUDA_NCCL` names;
    ///    if it is set, no other place;
    /// 2. `libnccl.so.2`, by the system's loader;
    /// 3. the loader's folders, toolkits and Python environments: those of `VIRTUAL_ENV`,
    ///    `CONDA_PREFIX`, the `python3` in `PATH`, the user and the system.
    ///
    /// # Errors
    /// [`Error::NotFound`] lists where it was looked for. [`Error::Unusable`]: `CUDA_NCCL` names no
    /// NCCL, or it is older than 2.13.4. [`Error::Multicast`]: the environment lacks
    /// [`NCCL_NVLS_ENABLE=0`](MULTICAST).
    pub fn load() -> Result<Self> {
        match std::env::var(MULTICAST) {
            Ok(value) if value == "0" => {}
            Ok(value) => return Err(Error::Multicast { found: format!("{MULTICAST}={value}") }),
            Err(_) => return Err(Error::Multicast { found: "no such variable".to_owned() }),
        }
        if let Some(named) = NCCL.named(&Process) {
            return Self::open(&named).map_err(|why| unusable(&named, why));
        }
        let mut tried = Vec::new();
        let by_name = PathBuf::from("libnccl.so.2");
        let places = NCCL.places(&Process);
        let found = places.iter().filter_map(|folder| NCCL.within(folder));
        for path in [by_name].into_iter().chain(found) {
            match Self::open(&path) {
                Ok(nccl) => return Ok(nccl),
                Err(why) => tried.push(format!("{}: {why}", path.display())),
            }
        }
        let without = places.iter().filter(|folder| folder.is_dir() && NCCL.within(folder).is_none());
        let without: Vec<_> = without.map(|folder| folder.display().to_string()).collect();
        tried.push(format!("there is none in {}", without.join(", ")));
        Err(Error::NotFound { tried })
    }

    /// The stand-in: all-reduce, send and receive by copies and kernels of the driver that is
    /// installed in this process, whichever that is. For tests without NCCL.
    #[must_use]
    pub fn stand_in() -> Self {
        Self(Arc::new(Loaded { api: stand_in::API, version: OLDEST, origin: "the stand-in".to_owned() }))
    }

    /// The same library with other functions, for tests of what fails.
    ///
    /// # Safety
    /// The functions do what NCCL's do, or fail and do nothing.
    #[must_use]
    pub unsafe fn with_api(&self, change: impl FnOnce(&mut Api)) -> Self {
        let mut api = self.0.api;
        change(&mut api);
        let (version, origin) = (self.0.version, self.0.origin.clone());
        Self(Arc::new(Loaded { api, version, origin }))
    }

    fn open(path: &Path) -> Result<Self, String> {
        // SAFETY: a library with this name is NCCL, or was named by the environment as such.
        let library = unsafe { Library::new(path) }.map_err(|error| in_words(&error))?;
        let library = ManuallyDrop::new(library);
        // SAFETY: as above; it is never closed.
        let api = unsafe { Api::of(&library) }.map_err(|error| in_words(&error))?;
        let mut version = 0;
        // SAFETY: the out pointer is valid.
        let status = unsafe { (api.version)(&raw mut version) };
        let origin = path.display().to_string();
        match (status, version) {
            (SUCCESS, OLDEST..) => Ok(Self(Arc::new(Loaded { api, version, origin }))),
            (SUCCESS, _) => Err(format!("its version is {version}, and {OLDEST} is the oldest that serves")),
            (status, _) => Err(format!("ncclGetVersion answered {status}")),
        }
    }

    /// The functions, for calls of one's own.
    #[must_use]
    pub fn api(&self) -> &Api {
        &self.0.api
    }

    /// The version as NCCL numbers it, such as 22803 for 2.28.3.
    #[must_use]
    pub fn version(&self) -> i32 {
        self.0.version
    }

    /// The file, or that it is the stand-in.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.0.origin
    }

    /// Checks the result of a call. `of` is the communicator of the call, or null.
    pub(crate) fn check(&self, call: &'static str, status: c_int, of: RawCommunicator) -> Result<()> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: the call takes any number.
        let words = unsafe { text((self.0.api.error_string)(status)) };
        // SAFETY: the call takes a live communicator, or null.
        let last = unsafe { text((self.0.api.last_error)(of)) };
        Err(Error::Refused { call, status, words, last })
    }
}

fn unusable(path: &Path, why: String) -> Error {
    Error::Unusable { path: path.display().to_string(), why }
}

/// The system's reason is the source of libloading's error.
fn in_words(error: &libloading::Error) -> String {
    core::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// A C string as text.
///
/// # Safety
/// It is null or a C string.
unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().trim().to_owned()
}

impl fmt::Debug for Nccl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Nccl")
            .field("version", &self.0.version)
            .field("origin", &self.0.origin)
            .finish()
    }
}

/// The version and the origin.
impl fmt::Display for Nccl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = match self.0.version {
            version @ 10_000.. => (version / 10_000, version / 100 % 100, version % 100),
            version => (version / 1000, version / 100 % 10, version % 100),
        };
        write!(formatter, "NCCL {major}.{minor}.{patch} from {}", self.0.origin)
    }
}
