//! The launches of kernels in place of fills and copies.

use core::ffi::c_void;
use std::sync::Arc;

use cuda_handles::{Allocation, Context, CopyLayout, FillLayout, Kernel};
use cuda_launch::{Dim, LaunchConfig};
use cuda_sys::{CUdevice_attribute, CUgraphNodeParams};

use crate::error::Result;
use crate::exec::options::InstantiateOptions;
use crate::own_kernels::Own;
use crate::shape::planning::drawn::Overlap;
use crate::shape::substitute::memory::Place;
use crate::shape::substitute::work::{MemoryWork, layer, unit};
use crate::state::raw_params::kernel_params;

/// The kernels that take the place of fills and copies, as far as they are wanted.
#[derive(Clone, Debug)]
pub(crate) struct SubstituteKernels {
    fills: Option<FillKernels>,
    copies: Option<CopyKernels>,
    /// The multiprocessors of the device; 0 if no kernel is wanted.
    multiprocessors: u32,
}

/// The kernels for fills. Those of rows are shorter: they take less of the device's time, and their
/// few arguments less of the launch call's.
#[derive(Clone, Debug)]
struct FillKernels {
    /// Small rows of aligned words.
    words: Kernel,
    any: Kernel,
}

/// The kernels for copies; see [`FillKernels`].
#[derive(Clone, Debug)]
struct CopyKernels {
    /// Rows of aligned units of 16 bytes.
    units: Kernel,
    /// Rows of aligned words.
    words: Kernel,
    any: Kernel,
}

/// A launch of one of the kernels.
#[derive(Debug)]
pub(crate) struct SubstituteLaunch<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) grid: Dim,
    pub(crate) block: Dim,
    /// The arguments, each in the lower bytes of its number. A kernel has fewer than these, or as
    /// many.
    arguments: [u64; 10],
}

/// Bytes that a thread moves at a time, where it can.
const UNIT: u64 = 16;

/// Bytes of a word.
const WORD: u64 = 4;

/// A row of so many words is small: the driver makes kernels of larger fills.
const MOST_WORDS: u64 = 4 << 10;

/// Threads of a block, at most.
const THREADS: u64 = 256;

/// Each multiprocessor has room for so many blocks.
const BLOCKS_OF_FILLS: u32 = 8;

/// As many were fastest with two (seen on an H200), and more take room from kernels beside.
const BLOCKS_OF_COPIES: u32 = 2;

impl SubstituteKernels {
    /// The kernels that options want.
    pub(crate) fn wanted(options: &InstantiateOptions, own: &Own, context: &Context) -> Result<Self> {
        let (mut fills, mut copies, mut multiprocessors) = (None, None, 0);
        if options.runs_fills_by_kernels() {
            fills = Some(FillKernels { words: own.kernel("fill_words")?, any: own.kernel("fill")? });
        }
        if options.runs_copies_by_kernels() {
            let (units, words) = (own.kernel("copy_units")?, own.kernel("copy_words")?);
            copies = Some(CopyKernels { units, words, any: own.kernel("copy")? });
        }
        if fills.is_some() || copies.is_some() {
            let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
            multiprocessors = context.device().attribute(attribute)?.max(1) as u32;
        }
        Ok(Self { fills, copies, multiprocessors })
    }

    /// The launch that does a fill or copy; `None` if no kernel is wanted for it.
    pub(crate) fn launch(&self, work: &MemoryWork) -> Option<SubstituteLaunch<'_>> {
        let blocks = |per_multiprocessor| self.multiprocessors.saturating_mul(per_multiprocessor);
        match work {
            MemoryWork::Fill(fill) => Some(self.fills.as_ref()?.launch(fill, blocks(BLOCKS_OF_FILLS))),
            MemoryWork::Copy(copy) => Some(self.copies.as_ref()?.launch(copy, blocks(BLOCKS_OF_COPIES))),
        }
    }
}

impl SubstituteLaunch<'_> {
    /// The programmatic edges that the kernel can be at. `memory` is all that the node of the fill
    /// or copy keeps alive.
    pub(crate) fn overlap(
        &self,
        context: &Context,
        work: &MemoryWork,
        memory: &[&Arc<Allocation>],
    ) -> Overlap {
        match work.written(context, memory) {
            _ if !self.kernel.waits_at_entry() => Overlap::Never,
            Some(Place::Device) => Overlap::Both,
            Some(Place::Pinned) | None => Overlap::Behind,
        }
    }

    /// The driver's form of a node.
    pub(crate) fn with_params<R>(mut self, give: impl FnOnce(&mut CUgraphNodeParams) -> R) -> R {
        let mut pointers =
            self.arguments.each_mut().map(|argument| core::ptr::from_mut(argument).cast::<c_void>());
        let config = LaunchConfig::new(self.grid, self.block);
        give(&mut kernel_params(self.kernel, config, pointers.as_mut_ptr()))
    }
}

impl FillKernels {
    fn launch(&self, fill: &FillLayout, blocks: u32) -> SubstituteLaunch<'_> {
        let width = fill.width as u64 * u64::from(fill.element);
        let pattern = u64::from(match fill.element {
            1 => (fill.value & 0xff) * 0x0101_0101,
            2 => (fill.value & 0xffff) * 0x0001_0001,
            _ => fill.value,
        });
        let words = width / WORD;
        if fill.height == 1 && (fill.address | width).is_multiple_of(WORD) && words <= MOST_WORDS {
            let (grid, block) = dims(words, 1, u32::MAX);
            let arguments = [fill.address, words, pattern, 0, 0, 0, 0, 0, 0, 0];
            return SubstituteLaunch { kernel: &self.words, grid, block, arguments };
        }
        let (grid, block) = dims(units(width, UNIT), fill.height as u64, blocks);
        let (pitch, height) = (fill.pitch as u64, fill.height as u64);
        let arguments = [fill.address, pitch, width, height, pattern, 0, 0, 0, 0, 0];
        SubstituteLaunch { kernel: &self.any, grid, block, arguments }
    }
}

impl CopyKernels {
    fn launch(&self, copy: &CopyLayout, blocks: u32) -> SubstituteLaunch<'_> {
        let (to, from) = (&copy.destination, &copy.source);
        let [width, height, depth] = [copy.width, copy.height, copy.depth].map(|extent| extent as u64);
        let is_of = |unit: u64| (to.address | from.address | width).is_multiple_of(unit);
        let is_row = height == 1 && depth == 1 && u32::try_from(width).is_ok();
        for (unit, kernel) in [(UNIT, &self.units), (WORD, &self.words)] {
            if is_row && is_of(unit) {
                let (grid, block) = dims(width / unit, 1, blocks);
                let arguments = [to.address, from.address, width / unit, 0, 0, 0, 0, 0, 0, 0];
                return SubstituteLaunch { kernel, grid, block, arguments };
            }
        }
        let unit = unit(copy);
        let (grid, block) = dims(units(width, unit), height.saturating_mul(depth), blocks);
        let (to_pitch, from_pitch) = (to.pitch as u64, from.pitch as u64);
        let to = [to.address, to_pitch, layer(to)];
        let from = [from.address, from_pitch, layer(from)];
        let arguments = [to[0], to[1], to[2], from[0], from[1], from[2], width, height, depth, unit];
        SubstituteLaunch { kernel: &self.any, grid, block, arguments }
    }
}

/// How many aligned units a row may be in, wherever it begins.
fn units(width: u64, unit: u64) -> u64 {
    width.saturating_add(2 * (unit - 1)) / unit
}

/// Grid and block for rows of units, a thread for each unit; fewer threads if that were more blocks
/// than `most`.
fn dims(units: u64, rows: u64, most: u32) -> (Dim, Dim) {
    let power = |count: u64, most: u64| count.min(most).max(1).next_power_of_two();
    let x = power(units, THREADS);
    let y = power(rows, THREADS / x);
    let most = u64::from(most).max(1);
    let across = units.div_ceil(x).clamp(1, most);
    // A grid has so many rows of blocks at most.
    let down = rows.div_ceil(y).clamp(1, (most / across).clamp(1, 65_535));
    // All are within the limits of grids and blocks.
    (Dim::from((across as u32, down as u32)), Dim::from((x as u32, y as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_row_is_one_small_block() {
        let (grid, block) = dims(units(64, 16), 1, 132);
        assert_eq!((grid, block), (Dim::from(1), Dim::from(8)));
    }

    #[test]
    fn rows_and_units_are_covered_by_no_more_blocks_than_are_wanted() {
        for units in [1, 2, 5, 255, 256, 257, 10_000, 1 << 40] {
            for rows in [1, 3, 255, 256, 70_000, 1 << 40] {
                for most in [1, 7, 264, 1 << 20] {
                    let (grid, block) = dims(units, rows, most);
                    assert!(u64::from(grid.x) * u64::from(grid.y) <= u64::from(most), "{grid:?}");
                    assert!(block.x * block.y <= 256 && grid.y <= 65_535, "{block:?}");
                    let is_whole =
                        u64::from(grid.x) * u64::from(grid.y) < u64::from(most) / 2 && grid.y < 65_535;
                    let covered = u64::from(grid.x * block.x) >= units && u64::from(grid.y * block.y) >= rows;
                    assert!(covered || !is_whole, "{units} units in {rows} rows: {grid:?}, {block:?}");
                }
            }
        }
    }
}
