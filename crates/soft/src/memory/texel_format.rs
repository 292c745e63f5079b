//! Formats of the C interface: of arrays, and of resource views.

use cuda_sys::{CUarray_format, CUresourceViewFormat};

use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::ptx::texture::TexelFormat;

/// Formats that this driver lacks: video, compressed and always normalised ones.
const FIRST_LACKING: u32 = CUarray_format::CU_AD_FORMAT_BC1_UNORM.0;
const LAST_LACKING: u32 = 0x200;
/// Compressed formats.
const LAST_VIEW: u32 = CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC7.0;

/// The format of a texel with that many channels: 1, 2 or 4.
pub(super) fn texel_format(format: CUarray_format, channels: u32) -> Answer<TexelFormat> {
    type F = CUarray_format;
    let format = match format {
        F::CU_AD_FORMAT_UNSIGNED_INT8 => TexelFormat::U8,
        F::CU_AD_FORMAT_UNSIGNED_INT16 => TexelFormat::U16,
        F::CU_AD_FORMAT_UNSIGNED_INT32 => TexelFormat::U32,
        F::CU_AD_FORMAT_SIGNED_INT8 => TexelFormat::S8,
        F::CU_AD_FORMAT_SIGNED_INT16 => TexelFormat::S16,
        F::CU_AD_FORMAT_SIGNED_INT32 => TexelFormat::S32,
        F::CU_AD_FORMAT_HALF => TexelFormat::F16,
        F::CU_AD_FORMAT_FLOAT => TexelFormat::F32,
        CUarray_format(FIRST_LACKING..=LAST_LACKING) => return Err(NOT_SUPPORTED),
        _ => return Err(INVALID_VALUE),
    };
    if matches!(channels, 1 | 2 | 4) { Ok(format) } else { Err(INVALID_VALUE) }
}

/// The format and channels of a view; `None` for those of the resource.
pub(super) fn view_format(format: CUresourceViewFormat) -> Answer<Option<(TexelFormat, u32)>> {
    // Three numbers of channels for each of these.
    const FORMATS: [TexelFormat; 8] = [
        TexelFormat::U8,
        TexelFormat::S8,
        TexelFormat::U16,
        TexelFormat::S16,
        TexelFormat::U32,
        TexelFormat::S32,
        TexelFormat::F16,
        TexelFormat::F32,
    ];
    let Some(index) = format.0.checked_sub(1) else { return Ok(None) };
    match FORMATS.get(index as usize / 3) {
        Some(found) => Ok(Some((*found, 1 << (index % 3)))),
        None if format.0 <= LAST_VIEW => Err(NOT_SUPPORTED),
        None => Err(INVALID_VALUE),
    }
}
