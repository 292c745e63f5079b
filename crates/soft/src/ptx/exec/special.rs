//! The values of special registers, and address tests.

use std::time::SystemTime;

use super::grid::{Grid, reserved_offset};
use crate::ptx::code::{RESERVED_SHARED, SpaceTest};
use crate::ptx::special::Special;
use crate::ptx::windows::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW, WORKSPACE_WINDOW};

/// Whether a generic address lies in a space.
pub(super) fn is_space(grid: &Grid<'_>, address: u64, which: SpaceTest) -> bool {
    let within = |window: u64| address.wrapping_sub(window) < WINDOW;
    let constant = || {
        let mut variables = grid.program.globals.iter().zip(grid.launch.globals);
        variables.any(|(variable, &start)| variable.is_const && address.wrapping_sub(start) < variable.size)
    };
    match which {
        SpaceTest::Shared => within(SHARED_WINDOW),
        SpaceTest::Local => within(LOCAL_WINDOW),
        SpaceTest::Param => within(PARAM_WINDOW),
        SpaceTest::Const => constant(),
        // Everything else, mapped or not, including the parameters.
        SpaceTest::Global => !within(SHARED_WINDOW) && !within(LOCAL_WINDOW) && !constant(),
    }
}

/// The value of a special register; `clock` is the number of instructions executed.
pub(super) fn special(
    grid: &Grid<'_>,
    which: Special,
    linear: u32,
    index: [u32; 3],
    block: [u32; 3],
    clock: u64,
) -> u64 {
    let axis = |dims: [u32; 3], axis: u8| u64::from(dims[usize::from(axis % 3)]);
    let lane = linear % 32;
    let below = (1_u32 << lane) - 1;
    let nanoseconds = || {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos() as u64)
    };
    match which {
        Special::Tid(of) => axis(index, of),
        Special::Ntid(of) => axis(grid.launch.block, of),
        Special::Ctaid(of) => axis(block, of),
        Special::Nctaid(of) => axis(grid.launch.grid, of),
        Special::LaneId => u64::from(lane),
        Special::WarpId => u64::from(linear / 32),
        Special::WarpCount => u64::from(grid.threads.div_ceil(32)),
        Special::LanemaskEq => u64::from(1_u32 << lane),
        Special::LanemaskLt => u64::from(below),
        Special::LanemaskLe => u64::from(below | (1 << lane)),
        Special::LanemaskGe => u64::from(!below),
        Special::LanemaskGt => u64::from(!below & !(1 << lane)),
        Special::Clock { high: false } => u64::from(clock as u32),
        Special::Clock { high: true } => clock >> 32,
        Special::Clock64 => clock,
        Special::GlobalTimer => nanoseconds(),
        Special::GlobalTimerLow => u64::from(nanoseconds() as u32),
        Special::GlobalTimerHigh => nanoseconds() >> 32,
        Special::DynamicShared => u64::from(grid.launch.dynamic_shared),
        Special::TotalShared => grid.shared_bytes as u64,
        Special::AggregateShared => grid.shared_bytes as u64 + u64::from(RESERVED_SHARED),
        Special::Reserved { offset } => reserved_offset(grid.shared_bytes) as u64 + u64::from(offset),
        Special::Fixed(value) => u64::from(value),
        Special::GridId => grid.state.number,
        Special::Workspace { high: true } => WORKSPACE_WINDOW >> 32,
        Special::Workspace { high: false } => WORKSPACE_WINDOW & u64::from(u32::MAX),
    }
}
