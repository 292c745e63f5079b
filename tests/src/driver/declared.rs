//! Tells the software driver what a typed kernel declares, so that it finds other accesses.

use cuda_launch::internal::{ObservedLaunch, set_launch_observer};
use cuda_soft::control::{DeclaredMemory, expect_accesses};

/// Checks the typed launches of this process against their declarations.
pub(super) fn check_declarations() {
    set_launch_observer(observe);
}

fn observe(launch: Option<ObservedLaunch<'_>>) {
    let Some(ObservedLaunch { kernel, declaration, ranges }) = launch else { return expect_accesses(None) };
    // A kernel that is declared as `unsafe fn` may be given addresses as numbers.
    if !declaration.ends_alone {
        return expect_accesses(None);
    }
    let memory = declaration.each().filter_map(|(position, parameter)| {
        let (start, bytes) = ranges.find(position)?;
        let name = declaration.names.get(position).copied().unwrap_or("?");
        Some(DeclaredMemory::new(name, start, bytes, parameter.access.writes()))
    });
    expect_accesses(Some((kernel.function(), memory.collect())));
}
