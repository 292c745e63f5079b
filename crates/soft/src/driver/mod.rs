//! The one driver of the process: what it poses as and whether it is initialised.

pub(crate) mod abort;
pub(crate) mod config;
pub(crate) mod handle;
pub(crate) mod pointer;
pub(crate) mod result_code;

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock};

use cuda_sys::{CUresult, Version};

use crate::driver::config::{Config, ConfigError};
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::sync::lock;

static WANTED: Mutex<Option<Config>> = Mutex::new(None);
static CONFIG: OnceLock<Result<Config, ConfigError>> = OnceLock::new();

/// The process that initialised the driver; a forked child is another one.
static INITIALISED_BY: AtomicU32 = AtomicU32::new(0);

/// Sets what the driver will pose as, as long as nobody has used it.
pub(crate) fn configure(config: Config) {
    *lock(&WANTED) = Some(config);
}

/// Says something on the standard error itself: test harnesses keep to themselves what macros
/// print, and forget it when the process ends.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("cuda-soft: {text}\n").as_bytes());
}

/// What the driver poses as, or why it poses as nothing.
fn outcome() -> &'static Result<Config, ConfigError> {
    CONFIG.get_or_init(|| {
        let wanted = lock(&WANTED).take();
        let outcome = wanted.map_or_else(Config::from_environment, Ok);
        if let Err(error) = &outcome {
            say(&error.to_string());
        }
        outcome
    })
}

/// What the driver poses as.
pub(crate) fn config() -> &'static Config {
    static DEFAULT: LazyLock<Config> = LazyLock::new(Config::new);
    outcome().as_ref().unwrap_or_else(|_| &DEFAULT)
}

/// Whether the driver can be used at all: the environment may ask for what there cannot be.
pub(crate) fn check() -> Answer {
    if outcome().is_ok() { Ok(()) } else { Err(INVALID_VALUE) }
}

pub(crate) fn version() -> Version {
    config().version
}

/// `cuInit`.
pub(crate) fn initialise() -> Answer {
    check()?;
    if config().devices == 0 {
        return Err(CUresult::CUDA_ERROR_NO_DEVICE);
    }
    let me = std::process::id();
    match INITIALISED_BY.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Ok(()),
        Err(owner) if owner == me => Ok(()),
        Err(_) => Err(CUresult::CUDA_ERROR_NOT_INITIALIZED),
    }
}

pub(crate) fn is_initialised() -> bool {
    INITIALISED_BY.load(Ordering::Acquire) == std::process::id()
}
