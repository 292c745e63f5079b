//! Copy descriptions of the C interface.

use cuda_sys::{CUDA_MEMCPY2D_v2, CUDA_MEMCPY3D_v2, CUmemorytype};

use super::array;
use super::copy::{Copy3, InArray, Side};
use super::memory_kind::{Accept, MemoryKind, has_context};
use crate::device::properties::MAX_PITCH;
use crate::driver::handle::number;
use crate::driver::result_code::{Answer, INVALID_VALUE};

/// One side as the C structures describe it.
struct RawSide {
    kind: CUmemorytype,
    host: u64,
    device: u64,
    array: u64,
    at: [usize; 3],
    pitch: usize,
    rows: usize,
}

impl RawSide {
    fn resolve(&self, extent: [usize; 3]) -> Answer<Side> {
        let (base, place) = match self.kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => {
                // Host memory is not checked, not even whether it is mapped. A device pointer given
                // as a host pointer works.
                (self.host, MemoryKind::of(self.host).ok_or(INVALID_VALUE)?)
            }
            CUmemorytype::CU_MEMORYTYPE_DEVICE => match MemoryKind::of(self.device) {
                Some(MemoryKind::Pageable) | None => return Err(INVALID_VALUE),
                Some(place) => (self.device, place),
            },
            CUmemorytype::CU_MEMORYTYPE_UNIFIED => {
                (self.device, MemoryKind::of(self.device).ok_or(INVALID_VALUE)?)
            }
            CUmemorytype::CU_MEMORYTYPE_ARRAY => return self.in_array(extent),
            _ => return Err(INVALID_VALUE),
        };
        let [width, height, depth] = extent;
        if base == 0 || self.pitch > MAX_PITCH as usize {
            return Err(INVALID_VALUE);
        }
        let [x, y, z] = self.at;
        let row_end = x.checked_add(width).ok_or(INVALID_VALUE)?;
        let last_row = y.checked_add(height).ok_or(INVALID_VALUE)?;
        let pitch = if self.pitch == 0 { row_end } else { self.pitch };
        if (height > 1 || depth > 1) && pitch < row_end {
            return Err(INVALID_VALUE);
        }
        let rows = if self.rows == 0 { last_row } else { self.rows };
        if depth > 1 && rows < last_row {
            return Err(INVALID_VALUE);
        }
        let slice = pitch.checked_mul(rows).ok_or(INVALID_VALUE)?;
        let offset = z.checked_mul(slice).and_then(|z| z.checked_add(y.checked_mul(pitch)?)?.checked_add(x));
        let address = base.checked_add(offset.ok_or(INVALID_VALUE)? as u64).ok_or(INVALID_VALUE)?;
        Ok(Side { address, pitch, slice, place, has_context: has_context(address), array: None })
    }

    /// A place in an array. It takes whole texels, and nothing outside.
    fn in_array(&self, extent: [usize; 3]) -> Answer<Side> {
        let array = array::get(self.array).map_err(|_| INVALID_VALUE)?;
        let is_inside =
            |((at, len), size): ((usize, usize), usize)| at.checked_add(len).is_some_and(|end| end <= size);
        if !self.at.into_iter().zip(extent).zip(array.extent()).all(is_inside) {
            return Err(INVALID_VALUE);
        }
        let texel = array.texels.texel_bytes() as usize;
        let [x, y, z] = self.at;
        if !x.is_multiple_of(texel) || !extent[0].is_multiple_of(texel) {
            return Err(INVALID_VALUE);
        }
        let (pitch, slice) = (array.texels.pitch as usize, array.texels.slice as usize);
        let address = array.texels.address + (z * slice + y * pitch + x) as u64;
        let array = Some(InArray { handle: self.array, at: self.at });
        Ok(Side { address, pitch, slice, place: MemoryKind::Device, has_context: true, array })
    }
}

/// Parses the description of a copy. An extent of 0 is an invalid value for a node and nothing to
/// do for a call.
pub(crate) fn parse(raw: &CUDA_MEMCPY3D_v2, accept: Accept) -> Answer<Copy3> {
    let extent = [raw.WidthInBytes, raw.Height, raw.Depth];
    if accept == Accept::Reserved && extent.contains(&0) {
        return Err(INVALID_VALUE);
    }
    let src = RawSide {
        kind: raw.srcMemoryType,
        host: raw.srcHost.expose_provenance() as u64,
        device: raw.srcDevice,
        array: number(raw.srcArray),
        at: [raw.srcXInBytes, raw.srcY, raw.srcZ],
        pitch: raw.srcPitch,
        rows: raw.srcHeight,
    };
    let dst = RawSide {
        kind: raw.dstMemoryType,
        host: raw.dstHost.expose_provenance() as u64,
        device: raw.dstDevice,
        array: number(raw.dstArray),
        at: [raw.dstXInBytes, raw.dstY, raw.dstZ],
        pitch: raw.dstPitch,
        rows: raw.dstHeight,
    };
    let copy = Copy3 { src: src.resolve(extent)?, dst: dst.resolve(extent)?, extent };
    copy.check_ranges(accept)?;
    Ok(copy)
}

/// Converts a two-dimensional description to three dimensions.
pub(crate) fn widen(raw: &CUDA_MEMCPY2D_v2) -> CUDA_MEMCPY3D_v2 {
    CUDA_MEMCPY3D_v2 {
        srcXInBytes: raw.srcXInBytes,
        srcY: raw.srcY,
        srcMemoryType: raw.srcMemoryType,
        srcHost: raw.srcHost,
        srcDevice: raw.srcDevice,
        srcArray: raw.srcArray,
        srcPitch: raw.srcPitch,
        dstXInBytes: raw.dstXInBytes,
        dstY: raw.dstY,
        dstMemoryType: raw.dstMemoryType,
        dstHost: raw.dstHost,
        dstDevice: raw.dstDevice,
        dstArray: raw.dstArray,
        dstPitch: raw.dstPitch,
        WidthInBytes: raw.WidthInBytes,
        Height: raw.Height,
        Depth: 1,
        ..CUDA_MEMCPY3D_v2::default()
    }
}
