//! The driver of this process: its configuration and whether it is initialised.
//!
//! This module is at the bottom, together with `ptx`: handles, result codes and pointer arguments
//! are here, too, since every other module uses them.

pub(crate) mod abort;
pub(crate) mod checks;
pub(crate) mod config;
pub(crate) mod explain;
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

/// The process that called `cuInit`. A forked child is another process.
static INITIALISED_BY: AtomicU32 = AtomicU32::new(0);

/// Sets the configuration. It has no effect once the driver has been used.
pub(crate) fn configure(config: Config) {
    *lock(&WANTED) = Some(config);
}

/// Writes a line to the standard error stream directly. Test harnesses capture what the print
/// macros write and lose it when the process ends.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("cuda-soft: {text}\n").as_bytes());
}

/// The configuration, or why there is none.
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

/// The configuration of the driver.
pub(crate) fn config() -> &'static Config {
    static DEFAULT: LazyLock<Config> = LazyLock::new(Config::new);
    outcome().as_ref().unwrap_or_else(|_| &DEFAULT)
}

/// Fails if the environment asks for an impossible configuration.
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
