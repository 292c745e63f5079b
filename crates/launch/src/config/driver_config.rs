//! A launch configuration in the driver's form.

use cuda_handles::Stream;
use cuda_sys::CUlaunchConfig;

use crate::config::attribute::AttributeList;
use crate::config::launch_config::LaunchConfig;

/// The driver's configuration. It points to `attributes`, which must outlive its use.
pub(crate) fn raw_config(
    config: &LaunchConfig,
    stream: Option<&Stream>,
    attributes: &mut AttributeList,
) -> CUlaunchConfig {
    let mut raw = CUlaunchConfig::default();
    (raw.gridDimX, raw.gridDimY, raw.gridDimZ) = config.grid().into();
    (raw.blockDimX, raw.blockDimY, raw.blockDimZ) = config.block().into();
    raw.sharedMemBytes = config.shared();
    raw.hStream = stream.map_or(core::ptr::null_mut(), Stream::as_raw);
    raw.attrs = attributes.as_mut_ptr();
    raw.numAttrs = attributes.len() as u32;
    raw
}
