//! The one driver of the process: what it poses as and whether it is initialised.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use cuda_sys::{CUresult, Version};

use crate::code::Answer;
use crate::config::Config;

static WANTED: Mutex<Option<Config>> = Mutex::new(None);
static CONFIG: OnceLock<Config> = OnceLock::new();

/// The process that initialised the driver; a forked child is another one.
static INITIALISED_BY: AtomicU32 = AtomicU32::new(0);

/// Sets what the driver will pose as, as long as nobody has used it.
pub(crate) fn configure(config: Config) {
    *WANTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(config);
}

/// What the driver poses as.
pub(crate) fn config() -> &'static Config {
    CONFIG.get_or_init(|| {
        let wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner).take();
        wanted.unwrap_or_else(|| Config::from_environment().unwrap_or_default())
    })
}

pub(crate) fn version() -> Version {
    config().version
}

/// `cuInit`.
pub(crate) fn initialise() -> Answer {
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
