//! A launch, checked against its kernel.

use super::grid_state::GridState;
use crate::ptx::code::{Program, RESERVED_SHARED};
use crate::ptx::error::{Fault, FaultKind};
use crate::ptx::image::Launch;
use crate::ptx::memory::{Checks, DeviceMemory, Heap};
use crate::ptx::windows::WINDOW;

/// The data that all blocks of a launch share.
pub(super) struct Grid<'a> {
    pub(super) launch: &'a Launch<'a>,
    pub(super) program: &'a Program,
    pub(super) memory: &'a dyn DeviceMemory,
    /// Static and dynamic shared memory of a block.
    pub(super) shared_bytes: usize,
    /// The same with the reserved memory, if code asks for that.
    pub(super) whole_shared_bytes: usize,
    pub(super) threads: u32,
    pub(super) state: &'a GridState,
    pub(super) checks: Checks,
}

impl Grid<'_> {
    /// The heap of `malloc`.
    pub(super) fn heap(&self) -> &Heap {
        self.memory.heap().unwrap_or(&self.program.heap)
    }
}

/// The address of the reserved shared memory, behind what the kernel has. On GPUs it lies in front.
pub(super) fn reserved_offset(shared_bytes: usize) -> usize {
    shared_bytes.next_multiple_of(16)
}

/// Whether accesses of a program can be checked for races. Those of asynchronous copies and of
/// whole warps are made for other threads, and groups of several warps wait for each other in ways
/// of their own.
fn is_checkable(program: &Program) -> bool {
    !program.uses_reserved
        && program.functions.iter().all(|function| function.asyncs.is_empty() && function.matrices.is_empty())
}

fn product(dims: [u32; 3]) -> Option<u64> {
    dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(u64::from(dim)))
}

/// The bytes of shared memory, with those that are reserved if code asks for them.
fn whole_shared(program: &Program, shared_bytes: usize) -> usize {
    if program.uses_reserved {
        reserved_offset(shared_bytes) + RESERVED_SHARED as usize
    } else {
        shared_bytes
    }
}

/// Checks a launch against its kernel; returns the number of blocks, too.
pub(super) fn prepare<'a>(
    launch: &'a Launch<'a>,
    memory: &'a dyn DeviceMemory,
    state: &'a GridState,
) -> Result<(Grid<'a>, u64), Fault> {
    let kernel = launch.kernel;
    let refuse = |detail: String| Fault {
        kind: FaultKind::LaunchFailed,
        kernel: kernel.name.clone(),
        line: 0,
        source: None,
        block: [0; 3],
        thread: [0; 3],
        address: None,
        size: None,
        write: false,
        detail,
    };
    let wanted = kernel.param_bytes() as usize;
    if launch.params.len() != wanted {
        return Err(refuse(format!(
            "the kernel has {wanted} bytes of parameters, {} are given",
            launch.params.len()
        )));
    }
    let variables = kernel.program.globals.len();
    if launch.globals.len() != variables {
        return Err(refuse(format!(
            "the image has {variables} variables, {} addresses are given",
            launch.globals.len()
        )));
    }
    for (variable, &address) in kernel.program.globals.iter().zip(launch.globals) {
        if !address.is_multiple_of(variable.align) {
            let (name, align) = (&variable.name, variable.align);
            return Err(refuse(format!("variable `{name}` at {address:#x} is not aligned to {align} bytes")));
        }
    }
    let threads = product(launch.block).filter(|threads| (1..=1024).contains(threads));
    let Some(threads) = threads else {
        return Err(refuse(format!("a block of {:?} threads is not within 1 to 1024", launch.block)));
    };
    let Some(total) = product(launch.grid).filter(|&blocks| blocks > 0 && blocks < 1 << 63) else {
        return Err(refuse(format!("a grid of {:?} blocks is impossible", launch.grid)));
    };
    let shared = u64::from(kernel.static_shared) + u64::from(launch.dynamic_shared);
    if shared > WINDOW {
        return Err(refuse(format!("{shared} bytes of shared memory are too many")));
    }
    let grid = Grid {
        launch,
        program: &kernel.program,
        memory,
        shared_bytes: shared as usize,
        whole_shared_bytes: whole_shared(&kernel.program, shared as usize),
        threads: threads as u32,
        state,
        checks: if is_checkable(&kernel.program) { memory.checks() } else { Checks::default() },
    };
    Ok((grid, total))
}

/// The index of the block with this number.
pub(super) fn block_index(launch: &Launch<'_>, number: u64) -> [u32; 3] {
    let [x, y, _] = launch.grid.map(u64::from);
    [number % x, number / x % y, number / (x * y)].map(|index| index as u32)
}

/// The number of the block with this index.
pub(super) fn block_number(launch: &Launch<'_>, index: [u32; 3]) -> u64 {
    let [x, y, _] = launch.grid.map(u64::from);
    let [i, j, k] = index.map(u64::from);
    i + x * (j + y * k)
}

/// The index of the thread with this number.
pub(super) fn thread_index(launch: &Launch<'_>, number: usize) -> [u32; 3] {
    let [x, y, _] = launch.block.map(|dim| dim as usize);
    [number % x, number / x % y, number / (x * y)].map(|index| index as u32)
}
