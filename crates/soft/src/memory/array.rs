//! Arrays: memory for textures and surfaces, which calls name by handles. Here the texels lie row
//! by row.

use std::sync::{Arc, Mutex, MutexGuard};

use cuda_sys::{
    CUDA_ARRAY3D_COLOR_ATTACHMENT, CUDA_ARRAY3D_CUBEMAP, CUDA_ARRAY3D_DESCRIPTOR_v2, CUDA_ARRAY3D_LAYERED,
    CUDA_ARRAY3D_SURFACE_LDST, CUDA_ARRAY3D_TEXTURE_GATHER, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE,
};

use super::allocate::allocate;
use super::allocation::{Allocation, Origin, Request};
use super::texel_format::texel_format;
use crate::device::context::Context;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED};
use crate::ptx::texture::{Shape, Texels};
use crate::sync::lock;

const SUPPORTED_FLAGS: u32 = CUDA_ARRAY3D_LAYERED
    | CUDA_ARRAY3D_SURFACE_LDST
    | CUDA_ARRAY3D_CUBEMAP
    | CUDA_ARRAY3D_TEXTURE_GATHER
    | CUDA_ARRAY3D_COLOR_ATTACHMENT;
/// Faces of a cube.
pub(super) const FACES: usize = 6;

/// The most texels of an array in each dimension, or layers in the last one.
pub(crate) mod most {
    pub(crate) const PLAIN_1D: usize = 131_072;
    pub(crate) const PLAIN_2D: [usize; 2] = [131_072, 65_536];
    pub(crate) const PLAIN_3D: usize = 16_384;
    pub(crate) const LAYERED: usize = 32_768;
    pub(crate) const LAYERS: usize = 2_048;
    pub(crate) const CUBE_LAYERS: usize = 2_046;
}

/// An array.
#[derive(Debug)]
pub(crate) struct Array {
    /// What it was created from.
    pub(crate) descriptor: CUDA_ARRAY3D_DESCRIPTOR_v2,
    pub(crate) texels: Texels,
    pub(crate) memory: Arc<Allocation>,
    context: u64,
}

static ARRAYS: Mutex<Slots<Arc<Array>>> = Mutex::new(Slots::new(Kind::Array));

fn arrays() -> MutexGuard<'static, Slots<Arc<Array>>> {
    lock(&ARRAYS)
}

impl Array {
    /// Bytes of a row, rows, slices or layers.
    pub(super) fn extent(&self) -> [usize; 3] {
        let [width, height, depth] = self.texels.size;
        let slices = depth.max(self.texels.layers);
        [(width * self.texels.texel_bytes()) as usize, height as usize, slices as usize]
    }
}

/// The shape of an array, and its size in all dimensions, layers last.
fn shape(raw: &CUDA_ARRAY3D_DESCRIPTOR_v2) -> Answer<(Shape, [usize; 3])> {
    let [width, height, depth] = [raw.Width, raw.Height, raw.Depth];
    let is_layered = raw.Flags & CUDA_ARRAY3D_LAYERED != 0;
    let is_cube = raw.Flags & CUDA_ARRAY3D_CUBEMAP != 0;
    let (shape, most) = match (is_cube, is_layered, height, depth) {
        (true, ..) if width != height || depth == 0 || depth % FACES != 0 => return Err(INVALID_VALUE),
        (true, false, ..) => (Shape::Cube { is_layered }, [most::LAYERED, most::LAYERED, FACES]),
        (true, true, ..) => (Shape::Cube { is_layered }, [most::LAYERED, most::LAYERED, most::CUBE_LAYERS]),
        (_, true, _, 0) => return Err(INVALID_VALUE),
        (_, true, 0, _) => (Shape::Layered { rank: 1 }, [most::LAYERED, 0, most::LAYERS]),
        (_, true, _, _) => (Shape::Layered { rank: 2 }, [most::LAYERED, most::LAYERED, most::LAYERS]),
        (_, _, 0, 0) => (Shape::Plain { rank: 1 }, [most::PLAIN_1D, 0, 0]),
        (_, _, _, 0) => (Shape::Plain { rank: 2 }, [most::PLAIN_2D[0], most::PLAIN_2D[1], 0]),
        (_, _, 0, _) => return Err(INVALID_VALUE),
        _ => (Shape::Plain { rank: 3 }, [most::PLAIN_3D; 3]),
    };
    let size = [width, height, depth];
    if width == 0 || size.iter().zip(most).any(|(size, most)| *size > most) {
        return Err(INVALID_VALUE);
    }
    let gathers = raw.Flags & CUDA_ARRAY3D_TEXTURE_GATHER != 0;
    if gathers && matches!(shape, Shape::Plain { rank: 1 | 3 } | Shape::Layered { rank: 1 }) {
        return Err(INVALID_VALUE);
    }
    Ok((shape, size.map(|size| size.max(1))))
}

/// Creates an array in a context.
pub(crate) fn create(context: &Context, raw: &CUDA_ARRAY3D_DESCRIPTOR_v2) -> Answer<u64> {
    let format = texel_format(raw.Format, raw.NumChannels)?;
    if raw.Flags >= CUDA_ARRAY3D_VIDEO_ENCODE_DECODE << 1 {
        return Err(INVALID_VALUE);
    }
    let (shape, size) = shape(raw)?;
    if raw.Flags & !SUPPORTED_FLAGS != 0 {
        return Err(NOT_SUPPORTED);
    }
    let [width, height, depth] = size.map(|size| size as u32);
    let pitch = u64::from(width * format.bytes() * raw.NumChannels);
    let slice = pitch * u64::from(height);
    let len = usize::try_from(slice * u64::from(depth)).map_err(|_| INVALID_VALUE)?;
    let (origin, device) = (Origin::Array, context.device);
    let memory =
        allocate(Request { origin, len, device, context: context.handle, pool: 0, flags: raw.Flags })?;
    let is_solid = matches!(shape, Shape::Plain { .. });
    let texels = Texels {
        address: memory.start,
        format,
        channels: raw.NumChannels,
        shape,
        size: [width, height, if is_solid { depth } else { 1 }],
        layers: if is_solid { 1 } else { depth },
        pitch,
        slice,
    };
    let array = Array { descriptor: *raw, texels, memory, context: context.id };
    Ok(arrays().insert(Arc::new(array)))
}

pub(crate) fn get(handle: u64) -> Answer<Arc<Array>> {
    arrays().get(handle).cloned().ok_or(INVALID_HANDLE)
}

/// Takes the handle of an array away. The caller removes its memory.
pub(crate) fn destroy(handle: u64) -> Answer<Arc<Array>> {
    arrays().remove(handle).ok_or(INVALID_HANDLE)
}

/// Removes the arrays of a context that has ended. Its memory goes with all other memory of it.
pub(crate) fn forget_context(context: &Context) {
    arrays().retain(|array| array.context != context.id);
}

/// The number of live arrays.
pub(crate) fn count() -> usize {
    arrays().len()
}
