//! Tensor map calls. The 128 bytes have a format of this driver.

use core::ffi::{c_int, c_void};
use core::ops::Range;

use cuda_sys::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle, cuuint32_t, cuuint64_t,
};

use super::table::Entries;
use crate::driver;
use crate::driver::pointer::{required, slice};
use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::ptx::{MAP_OF_COLUMNS, MAP_OF_TILES};

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries { cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col, cuTensorMapReplaceAddress, ..entries }
}

type Ty = CUtensorMapDataType;

const MOST_RANK: usize = 5;
const MOST_BOX: u32 = 256;
const MOST_PIXELS: u32 = 1024;
const MOST_ELEMENT_STRIDE: u32 = 8;
const MOST_DIMENSION: u64 = 1 << 32;
const STRIDE_END: u64 = 1 << 40;
/// The words of an im2col map whose upper halves have pixels and corners.
const IM2COL_WORDS: Range<usize> = 12..14;

/// Bytes of an element; `None` for packed types smaller than a byte.
fn element_bytes(ty: Ty) -> Answer<Option<u64>> {
    Ok(Some(match ty {
        Ty::CU_TENSOR_MAP_DATA_TYPE_UINT8 => 1,
        Ty::CU_TENSOR_MAP_DATA_TYPE_UINT16
        | Ty::CU_TENSOR_MAP_DATA_TYPE_FLOAT16
        | Ty::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 => 2,
        Ty::CU_TENSOR_MAP_DATA_TYPE_UINT32
        | Ty::CU_TENSOR_MAP_DATA_TYPE_INT32
        | Ty::CU_TENSOR_MAP_DATA_TYPE_FLOAT32
        | Ty::CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ
        | Ty::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
        | Ty::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ => 4,
        Ty::CU_TENSOR_MAP_DATA_TYPE_UINT64
        | Ty::CU_TENSOR_MAP_DATA_TYPE_INT64
        | Ty::CU_TENSOR_MAP_DATA_TYPE_FLOAT64 => 8,
        Ty::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B
        | Ty::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B
        | Ty::CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B => return Ok(None),
        _ => return Err(INVALID_VALUE),
    }))
}

fn is_float(ty: Ty) -> bool {
    (Ty::CU_TENSOR_MAP_DATA_TYPE_FLOAT16.0..=Ty::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ.0).contains(&ty.0)
}

/// The most bytes of a box row that a swizzle allows.
fn swizzle_bytes(swizzle: CUtensorMapSwizzle) -> Answer<Option<u64>> {
    Ok(match swizzle {
        CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE => None,
        CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B => Some(32),
        CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B => Some(64),
        CUtensorMapSwizzle(3..=6) => Some(128),
        _ => return Err(INVALID_VALUE),
    })
}

fn demand(holds: bool) -> Answer {
    if holds { Ok(()) } else { Err(INVALID_VALUE) }
}

/// A tensor description.
struct Tiled<'a> {
    ty: Ty,
    address: u64,
    dims: &'a [u64],
    /// The strides in bytes of all dimensions but the first.
    strides: &'a [u64],
    boxes: &'a [u32],
    element_strides: &'a [u32],
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
}

impl Tiled<'_> {
    fn check(&self) -> Answer {
        let bytes = element_bytes(self.ty)?;
        let most_row = swizzle_bytes(self.swizzle)?;
        let wide = self.interleave == CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_32B;
        let flat = self.interleave == CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE;
        demand(self.interleave.0 <= CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_32B.0)?;
        demand(flat || self.dims.len() >= 3)?;
        let grain = if wide { 32 } else { 16 };
        demand(self.address.is_multiple_of(grain))?;
        demand(self.dims.iter().all(|&dim| (1..=MOST_DIMENSION).contains(&dim)))?;
        demand(self.strides.iter().all(|&stride| stride.is_multiple_of(grain) && stride < STRIDE_END))?;
        demand(self.boxes.iter().all(|&size| (1..=MOST_BOX).contains(&size)))?;
        demand(self.element_strides.iter().all(|&stride| (1..=MOST_ELEMENT_STRIDE).contains(&stride)))?;
        demand(!wide || self.swizzle == CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B)?;
        if let (true, Some(bytes), Some(&first)) = (flat, bytes, self.boxes.first()) {
            let row = u64::from(first) * bytes;
            demand(row.is_multiple_of(16) && most_row.is_none_or(|most| row <= most))?;
        }
        Ok(())
    }

    /// The 128 bytes, of which the last 5 words have a box size and an element stride each. The
    /// address comes first, so that it can be replaced.
    fn encode(&self, mark: u8, rest: [u32; 2]) -> CUtensorMap {
        let mut opaque = [0; 16];
        let kinds = [self.ty.0, self.dims.len() as u32, self.interleave.0, self.swizzle.0];
        opaque[0] = self.address;
        opaque[1] =
            kinds.iter().chain(&rest).fold(u64::from(mark), |word, &kind| word << 8 | u64::from(kind));
        opaque[2..][..self.dims.len()].copy_from_slice(self.dims);
        opaque[7..][..self.strides.len()].copy_from_slice(self.strides);
        for (word, (&size, &stride)) in
            opaque[11..].iter_mut().zip(self.boxes.iter().zip(self.element_strides))
        {
            *word = u64::from(size) << 32 | u64::from(stride);
        }
        CUtensorMap { opaque }
    }
}

/// The bounding box of a column of pixels, as offsets from both ends of the inner dimensions.
struct Corners<'a> {
    lower: &'a [c_int],
    upper: &'a [c_int],
}

impl Corners<'_> {
    /// The bits of an offset: all offsets of a corner share 16.
    fn bits(&self) -> u32 {
        match self.lower.len() {
            1 => 16,
            2 => 8,
            _ => 5,
        }
    }

    /// Fails if an offset is out of range or the box is empty. `dims` are those of the tensor.
    fn check(&self, dims: &[u64]) -> Answer {
        let half = 1 << (self.bits() - 1);
        demand(self.lower.iter().chain(self.upper).all(|offset| (-half..half).contains(offset)))?;
        let inner = dims.iter().skip(1).map(|dim| i64::try_from(*dim).unwrap_or(i64::MAX));
        let sizes = inner.zip(self.lower.iter().zip(self.upper));
        demand(sizes.into_iter().all(|(dim, (lower, upper))| dim + i64::from(*upper) > i64::from(*lower)))
    }

    /// Puts the corners and the pixels of a column into a map, in place of the box sizes of the
    /// dimensions behind the channels.
    fn encode(&self, mut map: CUtensorMap, pixels: u32) -> CUtensorMap {
        let bits = self.bits();
        let corner = |offsets: &[c_int]| {
            offsets.iter().fold(0, |word, offset| word << bits | (*offset as u32 & ((1 << bits) - 1)))
        };
        let corners = corner(self.lower) << 16 | corner(self.upper);
        for (word, size) in map.opaque[IM2COL_WORDS].iter_mut().zip([pixels, corners]) {
            *word = u64::from(size) << 32 | u64::from(*word as u32);
        }
        map
    }
}

/// Checks what all kinds of maps have.
fn check_options(ty: Ty, l2_promotion: CUtensorMapL2promotion, oob_fill: CUtensorMapFloatOOBfill) -> Answer {
    demand(l2_promotion.0 <= CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B.0)?;
    demand(oob_fill.0 == 0 || (oob_fill.0 == 1 && is_float(ty)))
}

/// The header demands maps at multiples of 64. Drivers take any place.
fn check_map(map: *const CUtensorMap) -> Answer {
    required(map)?;
    if driver::config().capability < (9, 0) { Err(NOT_SUPPORTED) } else { Ok(()) }
}

entries! {
    init fn cuTensorMapEncodeTiled(
        tensor_map: *mut CUtensorMap,
        tensor_data_type: CUtensorMapDataType,
        tensor_rank: cuuint32_t,
        global_address: *mut c_void,
        global_dim: *const cuuint64_t,
        global_strides: *const cuuint64_t,
        box_dim: *const cuuint32_t,
        element_strides: *const cuuint32_t,
        interleave: CUtensorMapInterleave,
        swizzle: CUtensorMapSwizzle,
        l2_promotion: CUtensorMapL2promotion,
        oob_fill: CUtensorMapFloatOOBfill,
    ) {
        check_map(tensor_map)?;
        required(global_address)?;
        let rank = tensor_rank as usize;
        demand((1..=MOST_RANK).contains(&rank))?;
        check_options(tensor_data_type, l2_promotion, oob_fill)?;
        let tiled = Tiled {
            ty: tensor_data_type,
            address: global_address.addr() as u64,
            dims: slice(global_dim, rank)?,
            strides: slice(global_strides, rank - 1)?,
            boxes: slice(box_dim, rank)?,
            element_strides: slice(element_strides, rank)?,
            interleave,
            swizzle,
        };
        tiled.check()?;
        tensor_map.write_unaligned(tiled.encode(MAP_OF_TILES, [l2_promotion.0, oob_fill.0]));
        Ok(())
    }

    init fn cuTensorMapEncodeIm2col(
        tensor_map: *mut CUtensorMap,
        tensor_data_type: CUtensorMapDataType,
        tensor_rank: cuuint32_t,
        global_address: *mut c_void,
        global_dim: *const cuuint64_t,
        global_strides: *const cuuint64_t,
        lower_corner: *const c_int,
        upper_corner: *const c_int,
        channels_per_pixel: cuuint32_t,
        pixels_per_column: cuuint32_t,
        element_strides: *const cuuint32_t,
        interleave: CUtensorMapInterleave,
        swizzle: CUtensorMapSwizzle,
        l2_promotion: CUtensorMapL2promotion,
        oob_fill: CUtensorMapFloatOOBfill,
    ) {
        check_map(tensor_map)?;
        required(global_address)?;
        let rank = tensor_rank as usize;
        demand((3..=MOST_RANK).contains(&rank))?;
        check_options(tensor_data_type, l2_promotion, oob_fill)?;
        demand((1..=MOST_PIXELS).contains(&pixels_per_column))?;
        let corners = Corners { lower: slice(lower_corner, rank - 2)?, upper: slice(upper_corner, rank - 2)? };
        // The pixel is the box of a row, the column that of the others.
        let boxes = [&[channels_per_pixel][..], &[1; MOST_RANK][..rank - 1]].concat();
        let tiled = Tiled {
            ty: tensor_data_type,
            address: global_address.addr() as u64,
            dims: slice(global_dim, rank)?,
            strides: slice(global_strides, rank - 1)?,
            boxes: &boxes,
            element_strides: slice(element_strides, rank)?,
            interleave,
            swizzle,
        };
        tiled.check()?;
        corners.check(tiled.dims)?;
        let map = tiled.encode(MAP_OF_COLUMNS, [l2_promotion.0, oob_fill.0]);
        tensor_map.write_unaligned(corners.encode(map, pixels_per_column));
        Ok(())
    }

    init fn cuTensorMapReplaceAddress(tensor_map: *mut CUtensorMap, global_address: *mut c_void) {
        check_map(tensor_map)?;
        required(global_address)?;
        demand(global_address.addr().is_multiple_of(16))?;
        let mut map = tensor_map.read_unaligned();
        map.opaque[0] = global_address.addr() as u64;
        tensor_map.write_unaligned(map);
        Ok(())
    }
}
