//! Boxes of tensors in global memory, as tensor maps describe them.

use super::access::Location;
use super::thread_fault::{Checked, ThreadFault};
use super::transfer::{AsyncThread, bytes_at, copy_bytes, put_or_reduce};
use crate::ptx::code::transfer::{AsyncInst, MapField, Pointer, Reduction};
use crate::ptx::code::{AtomicType, Cell, Space};
use crate::ptx::error::FaultKind;
use crate::ptx::math::swizzle::Swizzle;

/// The alignment of a box in shared memory.
pub(super) const TENSOR_ALIGNMENT: u32 = 128;
/// The words of a tensor map.
const WORDS: usize = 16;
const MAP_ALIGNMENT: u32 = 64;
const MAP_BYTES: u32 = 8 * WORDS as u32;
// Words of a map: the kinds, one in a byte, then for each dimension sizes, strides (of all but the
// first), and sizes of the box with steps.
const KINDS: usize = 1;
const SIZES: usize = 2;
const STRIDES: usize = 7;
const BOXES: usize = 11;
/// The second byte of the kinds, in a map of tiles.
pub(crate) const MAP_OF_TILES: u8 = 1;
/// The same in a map for im2col copies, which no kernel makes here.
pub(crate) const MAP_OF_COLUMNS: u8 = 2;
/// Swizzles move units of so many bytes.
const UNIT: usize = 16;
const MOST_RANK: usize = 5;
/// The most elements of a box in a dimension.
const MOST_BOX: u32 = 256;

/// One dimension of a box.
#[derive(Debug, Clone, Copy, Default)]
struct Dimension {
    /// Elements of the tensor.
    size: i64,
    /// Bytes from an element to the next.
    stride: u64,
    /// Elements of the box.
    count: u32,
    /// Elements of the tensor from one of the box to the next.
    step: i64,
    /// The first element.
    at: i64,
}

/// A box of a tensor. Its rows go along the first dimension.
#[derive(Debug)]
pub(super) struct TensorBox {
    address: u64,
    dimensions: [Dimension; MOST_RANK],
    element: Element,
    swizzle: Swizzle,
    /// Whether elements outside of the tensor are NaN, not zero.
    fills_nan: bool,
}

#[derive(Debug, Clone, Copy)]
struct Element {
    bytes: u32,
    atomic: Option<AtomicType>,
    nan: u64,
}

/// The element of a data type (`CUtensorMapDataType`).
fn element(ty: u8) -> Option<Element> {
    let (bytes, atomic, nan) = match ty {
        0 => (1, None, 0),
        1 => (2, None, 0),
        2 => (4, Some(AtomicType::U32), 0),
        3 => (4, Some(AtomicType::S32), 0),
        4 => (8, Some(AtomicType::U64), 0),
        5 => (8, Some(AtomicType::S64), 0),
        6 => (2, Some(AtomicType::F16), 0x7fff),
        7 | 10 => (4, Some(AtomicType::F32), 0x7fff_ffff),
        8 => (8, Some(AtomicType::F64), 0x7fff_ffff_ffff_ffff),
        9 => (2, Some(AtomicType::Bf16), 0x7fff),
        11 | 12 => (4, None, 0x7fff_ffff),
        _ => return None,
    };
    Some(Element { bytes, atomic, nan })
}

fn wrong<T>(detail: &str) -> Checked<T> {
    Err(ThreadFault::new(FaultKind::IllegalInstruction, detail))
}

impl TensorBox {
    /// The box of a map, in the format of this driver (`abi/tensor_map.rs`), at these coordinates.
    fn new(map: &[u64; WORDS], at: &[i32]) -> Checked<TensorBox> {
        let [_, mark, ty, rank, interleave, swizzle, _, fill] = map[KINDS].to_be_bytes();
        if mark == MAP_OF_COLUMNS {
            return wrong("this tensor map is for im2col copies, and the instruction copies a tile");
        }
        if mark != MAP_OF_TILES || usize::from(rank) != at.len() || at.len() > MOST_RANK {
            return wrong("this is not a tensor map of this rank");
        }
        let Some(element) = element(ty).filter(|_| interleave == 0) else {
            return wrong("the software driver supports no tensor maps with packed or interleaved elements");
        };
        let Some(swizzle) = Swizzle::of_map(swizzle) else {
            return wrong("the software driver does not support the swizzle of this tensor map");
        };
        // Dimensions beyond the rank have one element.
        let one = Dimension { size: 1, stride: 0, count: 1, step: 1, at: 0 };
        let mut dimensions = [one; MOST_RANK];
        for (index, (dimension, &at)) in dimensions.iter_mut().zip(at).enumerate() {
            let (wide, step) = (map[BOXES + index] >> 32, (map[BOXES + index] as u32).max(1));
            let (stride, step) =
                if index == 0 { (u64::from(element.bytes), 1) } else { (map[STRIDES + index - 1], step) };
            let count = (wide as u32).div_ceil(step);
            if !(1..=MOST_BOX).contains(&count) {
                return wrong("this is not a tensor map: its box has no such size");
            }
            let size = i64::try_from(map[SIZES + index]).unwrap_or(i64::MAX);
            *dimension = Dimension { size, stride, count, step: step.into(), at: at.into() };
        }
        Ok(TensorBox { address: map[0], dimensions, element, swizzle, fills_nan: fill == 1 })
    }

    pub(super) fn bytes(&self) -> u32 {
        self.dimensions
            .iter()
            .fold(self.element.bytes, |bytes, dimension| bytes.saturating_mul(dimension.count))
    }

    /// The type of reductions.
    pub(super) fn atomic_type(&self) -> Checked<AtomicType> {
        match self.element.atomic {
            Some(ty) => Ok(ty),
            None => wrong("a reduction on a tensor whose elements it cannot combine"),
        }
    }

    fn row_bytes(&self) -> usize {
        (self.dimensions[0].count * self.element.bytes) as usize
    }

    fn rows(&self) -> u32 {
        self.dimensions[1..].iter().map(|dimension| dimension.count).product()
    }

    /// The part of a row that lies in the tensor: its first byte in the row, its address and its
    /// bytes. `None` if all of it lies outside.
    fn part(&self, row: u32) -> Option<(usize, u64, u32)> {
        let [first, others @ ..] = &self.dimensions;
        let mut left = row;
        let mut address = self.address;
        for dimension in others {
            let at = dimension.at + i64::from(left % dimension.count) * dimension.step;
            left /= dimension.count;
            if !(0..dimension.size).contains(&at) {
                return None;
            }
            address = address.wrapping_add((at as u64).wrapping_mul(dimension.stride));
        }
        let start = first.at.max(0);
        let end = (first.at + i64::from(first.count)).min(first.size);
        if start >= end {
            return None;
        }
        let bytes = u64::from(self.element.bytes);
        let before = (start - first.at) as u64 * bytes;
        let address = address.wrapping_add((start as u64).wrapping_mul(bytes));
        Some((before as usize, address, ((end - start) as u64 * bytes) as u32))
    }

    /// A row outside of the tensor.
    fn empty_row(&self) -> Vec<u8> {
        let nan = if self.fills_nan { self.element.nan } else { 0 };
        let element = nan.to_le_bytes();
        element[..self.element.bytes as usize].repeat(self.dimensions[0].count as usize)
    }
}

impl AsyncThread<'_, '_, '_> {
    /// The box of a tensor map in memory.
    pub(super) fn tensor_box(&mut self, map: Pointer, rank: u8, list: u32) -> Checked<TensorBox> {
        let address = self.address(map);
        let location = self.find(map.space, address, MAP_BYTES, MAP_ALIGNMENT, false)?;
        let words: [u64; WORDS] = std::array::from_fn(|index| self.memory.load(location, Cell::U64, index));
        let list = list as usize;
        let registers = self.lists.get(list..list + usize::from(rank)).unwrap_or(&[]);
        let at: Vec<i32> = registers.iter().map(|&register| self.get(register) as i32).collect();
        TensorBox::new(&words, &at)
    }

    /// `tensormap.replace`.
    pub(super) fn replace_field(&mut self, inst: &AsyncInst, field: MapField) -> Checked<()> {
        let (address, value) = (self.address(inst.to), self.get(inst.size));
        let location = self.find(inst.to.space, address, MAP_BYTES, MAP_ALIGNMENT, true)?;
        let is_of_columns = (self.memory.load(location, Cell::U64, KINDS) >> 48) as u8 == MAP_OF_COLUMNS;
        let mut change = |word: usize, first: u32, width: u32, value: u64| {
            let mask = (u64::MAX >> (64 - width)) << first;
            let old = self.memory.load(location, Cell::U64, word);
            self.memory.store(location, Cell::U64, word, old & !mask | value << first & mask);
        };
        // A map may begin as zeros.
        if !is_of_columns {
            change(KINDS, 48, 8, MAP_OF_TILES.into());
        }
        match field {
            MapField::Address => change(0, 0, 64, value),
            MapField::Rank => change(KINDS, 32, 8, value.wrapping_add(1)),
            MapField::BoxSize(of) => change(BOXES + usize::from(of), 32, 32, value),
            MapField::Step(of) => change(BOXES + usize::from(of), 0, 32, value),
            MapField::Size(of) => change(SIZES + usize::from(of), 0, 64, value & u64::from(u32::MAX)),
            MapField::Stride(of) => change(STRIDES + usize::from(of), 0, 64, value),
            MapField::ElementType => change(KINDS, 40, 8, value),
            MapField::Interleave => change(KINDS, 24, 8, value),
            MapField::Swizzle => change(KINDS, 16, 8, value),
            MapField::Fill => change(KINDS, 0, 8, value),
        }
        Ok(())
    }

    /// `tensormap.cp_fenceproxy`.
    pub(super) fn copy_map(&mut self, inst: &AsyncInst) -> Checked<()> {
        let from = Location::Shared(self.shared(inst.from, MAP_BYTES, MAP_ALIGNMENT, false)?);
        let to = self.address(inst.to);
        let to = self.find(inst.to.space, to, MAP_BYTES, MAP_ALIGNMENT, true)?;
        copy_bytes(self.memory, from, to, MAP_BYTES);
        Ok(())
    }

    /// Checks every access to global memory.
    pub(super) fn check_box(&mut self, tensor: &TensorBox, write: bool) -> Checked<()> {
        for row in 0..tensor.rows() {
            if let Some((_, address, bytes)) = tensor.part(row) {
                self.find(Space::Global, address, bytes, tensor.element.bytes, write)?;
            }
        }
        Ok(())
    }

    /// Copies a box to shared memory.
    pub(super) fn load_box(&mut self, tensor: &TensorBox, to: usize) -> Checked<()> {
        for row in 0..tensor.rows() {
            let mut data = tensor.empty_row();
            if let Some((before, address, bytes)) = tensor.part(row) {
                let from = self.find(Space::Global, address, bytes, tensor.element.bytes, false)?;
                if let Some(part) = data.get_mut(before..before + bytes as usize) {
                    part.copy_from_slice(&bytes_at(self.memory, from, bytes));
                }
            }
            let start = to + row as usize * tensor.row_bytes();
            for (index, unit) in data.chunks(UNIT).enumerate() {
                let at = tensor.swizzle.apply(start + index * UNIT);
                // A swizzle may lead out of a box that is not aligned to its pattern.
                self.memory.location(Space::Shared, at as u64, unit.len() as u32, true)?;
                put_or_reduce(self.memory, unit, Location::Shared(at), None);
            }
        }
        Ok(())
    }

    /// Copies a box, whose content in shared memory at `from` was `data`, to global memory.
    pub(super) fn store_box(
        &mut self,
        tensor: &TensorBox,
        from: usize,
        data: &[u8],
        reduction: Option<Reduction>,
    ) -> Checked<()> {
        for row in 0..tensor.rows() {
            let Some((before, address, bytes)) = tensor.part(row) else { continue };
            let to = self.find(Space::Global, address, bytes, tensor.element.bytes, true)?;
            let start = row as usize * tensor.row_bytes();
            let mut content = Vec::with_capacity(tensor.row_bytes());
            for unit in (0..tensor.row_bytes()).step_by(UNIT) {
                let at = tensor.swizzle.apply(from + start + unit).wrapping_sub(from);
                content.extend_from_slice(data.get(at..at.saturating_add(UNIT)).unwrap_or(&[0; UNIT]));
            }
            let part = content.get(before..before + bytes as usize).unwrap_or(&[]);
            put_or_reduce(self.memory, part, to, reduction);
        }
        Ok(())
    }
}
