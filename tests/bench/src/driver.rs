//! The choice of the driver.

use core::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cuda_sys::{CUgraph, CUresult, CUstream, Driver, Loader};

use crate::Outcome;
use crate::measure::{Effort, LEAST};

/// A driver as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The driver that does nothing, so that only the library's own time is left.
    Null,
    Soft,
    System,
    File(PathBuf),
}

impl Choice {
    pub(crate) fn parse(name: &str) -> Self {
        match name {
            "null" => Self::Null,
            "soft" => Self::Soft,
            "system" => Self::System,
            path => Self::File(PathBuf::from(path)),
        }
    }

    /// Whether other code in the process can open the same driver.
    pub(crate) fn is_library(&self) -> bool {
        matches!(self, Self::System | Self::File(_))
    }

    /// Batches must be long beside the clock's own time and short beside the queue of a device.
    pub(crate) fn effort(&self) -> Effort {
        let (batch, time) = match self {
            Self::Null => (1000, Duration::from_secs(1)),
            Self::Soft => (100, Duration::from_secs(2)),
            Self::System | Self::File(_) => (200, Duration::from_secs(2)),
        };
        Effort { batch, time, least: LEAST }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => formatter.write_str("null"),
            Self::Soft => formatter.write_str("soft"),
            Self::System => formatter.write_str("system"),
            Self::File(path) => path.display().fmt(formatter),
        }
    }
}

/// Installs the chosen driver.
pub(crate) fn install(choice: &Choice) -> Outcome<&'static Driver> {
    let loader = match choice {
        // SAFETY: the functions keep to the interfaces of the calls, and nothing is read of what a
        // copy was to bring.
        Choice::Null => unsafe {
            cuda_soft::null_loader().wrap(|table| {
                table.cuStreamEndCapture = end_capture;
            })
        },
        Choice::Soft => cuda_soft::loader(soft()?),
        Choice::System => Loader::system(),
        // SAFETY: whoever names a library on the command line answers for its being a driver.
        Choice::File(path) => unsafe { Loader::file(path) },
    };
    Ok(loader.install()?)
}

/// The software driver, which poses as two devices unless the environment says otherwise.
fn soft() -> Outcome<cuda_soft::Config> {
    let config = cuda_soft::Config::from_environment()?;
    Ok(if std::env::var_os("CUDA_SOFT_DEVICES").is_some() { config } else { config.devices(2) })
}

/// A capture that ends without a graph was lost. Each one gives another graph.
unsafe extern "C" fn end_capture(_: CUstream, graph: *mut CUgraph) -> CUresult {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let handle = LAST.fetch_add(64, Ordering::Relaxed) + 64;
    // SAFETY: by the interface of the call, valid for a write.
    unsafe { *graph = core::ptr::without_provenance_mut(handle) };
    CUresult::CUDA_SUCCESS
}
