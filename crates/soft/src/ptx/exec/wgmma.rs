//! Products of four warps (`wgmma`), of matrices in shared memory.

use super::matrix::{LaneResult, WarpLanes, gather, scatter};
use super::thread_fault::ThreadFault;
use crate::ptx::code::matrix::{Element, Extent, GroupProduct, MatrixInst, Role};
use crate::ptx::math::matrix::{decode, product};
use crate::ptx::math::swizzle::Swizzle;

/// The lanes of a warp, which hold a fragment together.
const LANES: [usize; 32] = {
    let mut lanes = [0; 32];
    let mut lane = 0;
    while lane < 32 {
        lanes[lane] = lane;
        lane += 1;
    }
    lanes
};
/// Descriptors count in units of so many bytes.
const UNIT: usize = 16;
/// The rows of a core matrix.
const ROWS: usize = 8;

/// Multiplies the 16 rows of a warp; `warp` is its number in the group.
pub(super) fn multiply(
    lanes: &mut WarpLanes<'_>,
    inst: &MatrixInst,
    how: &GroupProduct,
    warp: usize,
) -> LaneResult<()> {
    let shape = how.product.shape;
    let (a_extent, b_extent) = (shape.extent(Role::A), shape.extent(Role::B));
    let mut a = if how.a.is_in_registers {
        gather(lanes, &how.product, Role::A, &inst.a, &LANES)
    } else {
        let first = warp * shape.m as usize;
        let source = Source { element: how.product.a, is_transposed: how.a.is_transposed };
        source.read(lanes, inst.a.first(), first, a_extent)?
    };
    // In memory, `b` is as `a` with columns for rows.
    let source = Source { element: how.product.b, is_transposed: how.b.is_transposed };
    let turned = Extent { rows: b_extent.columns, columns: b_extent.rows };
    let columns = source.read(lanes, inst.b.first(), 0, turned)?;
    let (n, k) = (shape.n as usize, shape.k as usize);
    let mut b: Vec<f64> =
        (0..n * k).map(|index| columns.get(index % n * k + index / n).copied().unwrap_or(0.0)).collect();
    for (matrix, is_negated) in [(&mut a, how.a.is_negated), (&mut b, how.b.is_negated)] {
        if is_negated {
            matrix.iter_mut().for_each(|value| *value = -*value);
        }
    }
    let mut c = gather(lanes, &how.product, Role::C, &inst.c, &LANES);
    if lanes.get(0, how.adds) & 1 == 0 {
        c.fill(0.0);
    }
    let d = product(&how.product, &a, &b, &c);
    scatter(lanes, &how.product, &inst.d, &LANES, &d);
    Ok(())
}

/// A matrix in shared memory. Its columns are the dimension that is summed over.
struct Source {
    element: Element,
    /// Whether columns are contiguous, not rows.
    is_transposed: bool,
}

impl Source {
    /// Reads rows from `first` on of the matrix that a descriptor tells of.
    fn read(
        &self,
        lanes: &WarpLanes<'_>,
        descriptor: Option<&u32>,
        first: usize,
        extent: Extent,
    ) -> LaneResult<Vec<f64>> {
        let descriptor = Descriptor::new(descriptor.map_or(0, |&register| lanes.get(0, register)));
        let bytes = self.element.bits() as usize / 8;
        let mut matrix = Vec::with_capacity(extent.len() as usize);
        for row in first..first + extent.rows as usize {
            for column in 0..extent.columns as usize {
                let at = if self.is_transposed {
                    descriptor.transposed(row * bytes, column)
                } else {
                    descriptor.plain(row, column * bytes)
                };
                let found = lanes.shared.get(at..at + bytes);
                let Some(found) = found else {
                    let detail = format!("outside of shared memory, which has {} bytes", lanes.shared.len());
                    return Err((0, ThreadFault::illegal(at as u64, bytes as u32, false, detail)));
                };
                let bits = found.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
                matrix.push(decode(self.element, bits));
            }
        }
        Ok(matrix)
    }
}

/// A matrix descriptor: where core matrices lie, of 8 rows of 16 bytes.
struct Descriptor {
    start: usize,
    leading: usize,
    stride: usize,
    swizzle: Swizzle,
}

impl Descriptor {
    fn new(bits: u64) -> Descriptor {
        let field = |first: u32| (bits >> first & 0x3fff) as usize * UNIT;
        Descriptor {
            start: field(0),
            leading: field(16),
            stride: field(32),
            swizzle: Swizzle::of_descriptor(bits),
        }
    }

    /// The address of a byte of a row.
    fn plain(&self, row: usize, byte: usize) -> usize {
        let width = self.swizzle.width();
        // Without a swizzle, the second 16 bytes of the rows lie in a core matrix of their own.
        let behind = byte / width * self.leading + byte % width;
        self.swizzle.apply(self.start + row / ROWS * self.stride + row % ROWS * width + behind)
    }

    /// The address of a byte of a column, whose bytes are contiguous.
    fn transposed(&self, byte: usize, column: usize) -> usize {
        let width = self.swizzle.width();
        // Without a swizzle, the two distances change their parts.
        let (along, across) =
            if width == UNIT { (self.stride, self.leading) } else { (self.leading, self.stride) };
        let behind = byte / width * along + byte % width;
        self.swizzle.apply(self.start + column / ROWS * across + column % ROWS * width + behind)
    }
}
