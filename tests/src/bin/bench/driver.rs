//! The choice of the driver.

use core::fmt;
use std::path::PathBuf;
use std::time::Duration;

use cuda_sys::{CUgraph, CUkernel, CUresult, CUstream, Driver, Loader};

use crate::Outcome;
use crate::measure::Effort;

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

    /// Batches must be long beside the clock's own time and short beside the queue of a device.
    pub(crate) fn effort(&self) -> Effort {
        let (batch, time) = match self {
            Self::Null => (1000, Duration::from_secs(1)),
            Self::Soft => (100, Duration::from_secs(2)),
            Self::System | Self::File(_) => (200, Duration::from_secs(2)),
        };
        Effort { batch, time }
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
                table.cuKernelGetParamInfo = Some(saxpy_layout);
                table.cuStreamEndCapture = end_capture;
            })
        },
        Choice::Soft => cuda_soft::loader(cuda_soft::Config::from_environment()?),
        Choice::System => Loader::system(),
        // SAFETY: whoever names a library on the command line answers for its being a driver.
        Choice::File(path) => unsafe { Loader::file(path) },
    };
    Ok(loader.install()?)
}

/// The parameters of the one kernel that is measured with arguments: the driver that does nothing
/// knows none, and then the library would have nothing to check.
unsafe extern "C" fn saxpy_layout(
    _: CUkernel,
    index: usize,
    offset: *mut usize,
    size: *mut usize,
) -> CUresult {
    const LAYOUT: [(usize, usize); 4] = [(0, 4), (4, 4), (8, 8), (16, 8)];
    let Some(&(at, bytes)) = LAYOUT.get(index) else { return CUresult::CUDA_ERROR_INVALID_VALUE };
    // SAFETY: by the interface of the call, null or valid for a write.
    if let Some(offset) = unsafe { offset.as_mut() } {
        *offset = at;
    }
    // SAFETY: as above.
    if let Some(size) = unsafe { size.as_mut() } {
        *size = bytes;
    }
    CUresult::CUDA_SUCCESS
}

/// A capture that ends without a graph was lost.
unsafe extern "C" fn end_capture(_: CUstream, graph: *mut CUgraph) -> CUresult {
    // SAFETY: by the interface of the call, valid for a write.
    unsafe { *graph = core::ptr::without_provenance_mut(64) };
    CUresult::CUDA_SUCCESS
}
