//! Tells the software driver what typed kernels declare, so that it finds other accesses. It does
//! so if the environment variable `CUDA_TEST_DECLARATIONS` is set: checked kernels are slower.

use cuda_launch::internal::{ObservedLaunch, set_launch_observer};
use cuda_soft::control::{DeclaredMemory, expect_accesses};
use cuda_sys::CUfunction;

use crate::record::heap::set_in_driver;

/// Checks the typed launches and kernel nodes of this process against their declarations.
pub(super) fn check_declarations() {
    set_launch_observer(|launch| {
        // What this allocates is no allocation of the library.
        let inside = set_in_driver(true);
        expect_accesses(launch.and_then(accesses));
        set_in_driver(inside);
    });
}

/// What a launch declares. A kernel that is declared as `unsafe fn` may be given addresses as
/// numbers, and declares nothing.
fn accesses(launch: ObservedLaunch<'_>) -> Option<(CUfunction, Vec<DeclaredMemory>)> {
    let declaration = launch.declaration;
    if !declaration.ends_alone {
        return None;
    }
    let ranges = launch.ranges();
    let memory = declaration.each().filter_map(|(position, parameter)| {
        let (start, bytes) = ranges.find(position)?;
        let name = declaration.names.get(position).copied().unwrap_or("?");
        Some(DeclaredMemory::new(name, start, bytes, parameter.access.writes()))
    });
    Some((launch.kernel.function(), memory.collect()))
}
