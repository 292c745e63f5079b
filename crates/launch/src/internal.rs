//! Items for the crates above, cuda-graph in particular. No promise of stability.

pub use crate::arguments::access::{AccessRanges, Accesses, Declaration, Memory, MemoryParameter};
pub use crate::config::attribute::AttributeList;
pub use crate::kernel::signature::Overlap;

/// stub
/// # Safety
/// s
pub unsafe fn launch_captured(
    _: &cuda_handles::Kernel,
    _: &cuda_handles::Stream,
    _: crate::StreamConfig<'_>,
    _: &impl crate::Arguments,
) -> crate::Result<()> {
    Ok(())
}
