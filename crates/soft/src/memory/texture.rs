//! Texture and surface objects: texels in memory, and how to read them.

use std::sync::{Arc, Mutex};

use cuda_sys::{
    CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_READ_AS_INTEGER,
    CU_TRSF_SEAMLESS_CUBEMAP, CU_TRSF_SRGB, CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC,
    CUaddress_mode, CUfilter_mode, CUresourcetype,
};

use super::allocation::forget_views;
use super::array::{self, Array, FACES};
use super::texel_format::{texel_format, view_format};
use crate::device::context::Context;
use crate::device::limits::{TEXTURE_ALIGNMENT, TEXTURE_PITCH_ALIGNMENT};
use crate::driver::handle::{Kind, Slots, number};
use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::ptx::texture::{AddressMode, Sampler, Shape, TexelFormat, Texels, Texture};
use crate::sync::lock;

/// The most texels of linear memory.
pub(crate) const MOST_LINEAR: usize = 1 << 28;
/// The most texels of pitched memory in each dimension, and the largest pitch.
pub(crate) const MOST_PITCHED: [usize; 2] = [131_072, 65_000];
pub(crate) const MOST_PITCH: usize = 2_097_120;

const FLAGS: u32 = CU_TRSF_READ_AS_INTEGER
    | CU_TRSF_NORMALIZED_COORDINATES
    | CU_TRSF_SRGB
    | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION
    | CU_TRSF_SEAMLESS_CUBEMAP
    // Without a meaning.
    | 0xc;

/// The descriptions that an object was created from.
#[derive(Clone, Copy)]
pub(crate) struct Descriptions {
    pub(crate) resource: CUDA_RESOURCE_DESC,
    pub(crate) texture: CUDA_TEXTURE_DESC,
    pub(crate) view: Option<CUDA_RESOURCE_VIEW_DESC>,
}

// SAFETY: the handles in the descriptions are only handed back.
unsafe impl Send for Descriptions {}
// SAFETY: as above.
unsafe impl Sync for Descriptions {}

/// A texture or surface object.
pub(crate) struct Object {
    pub(crate) texture: Texture,
    pub(crate) descriptions: Descriptions,
    context: u64,
}

static TEXTURES: Mutex<Slots<Arc<Object>>> = Mutex::new(Slots::new(Kind::Texture));
static SURFACES: Mutex<Slots<Arc<Object>>> = Mutex::new(Slots::new(Kind::Surface));

fn demand(holds: bool) -> Answer {
    if holds { Ok(()) } else { Err(INVALID_VALUE) }
}

/// The texels of memory without a handle.
fn texels(address: u64, format: TexelFormat, channels: u32, size: [usize; 2], pitch: usize) -> Texels {
    let [width, height] = size.map(|size| size as u32);
    Texels {
        address,
        format,
        channels,
        shape: Shape::Linear,
        size: [width, height, 1],
        layers: 1,
        pitch: pitch as u64,
        slice: 0,
    }
}

/// The texels of a resource, and its array if it is one.
///
/// # Safety
/// The member of the union that the type names is initialised.
unsafe fn resource(raw: &CUDA_RESOURCE_DESC) -> Answer<(Texels, Option<Arc<Array>>)> {
    demand(raw.flags == 0)?;
    match raw.resType {
        CUresourcetype::CU_RESOURCE_TYPE_ARRAY => {
            // SAFETY: the caller's promise.
            let array = array::get(number(unsafe { raw.res.array.hArray })).map_err(|_| INVALID_VALUE)?;
            Ok((array.texels, Some(array)))
        }
        CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
            // SAFETY: the caller's promise.
            demand(!unsafe { raw.res.mipmap.hMipmappedArray }.is_null())?;
            Err(NOT_SUPPORTED)
        }
        CUresourcetype::CU_RESOURCE_TYPE_LINEAR => {
            // SAFETY: the caller's promise.
            let linear = unsafe { raw.res.linear };
            let format = texel_format(linear.format, linear.numChannels)?;
            let count = linear.sizeInBytes / (format.bytes() * linear.numChannels) as usize;
            demand(linear.devPtr != 0 && linear.devPtr.is_multiple_of(TEXTURE_ALIGNMENT))?;
            let count = count.min(MOST_LINEAR);
            let found = texels(linear.devPtr, format, linear.numChannels, [count, 1], linear.sizeInBytes);
            Ok((found, None))
        }
        CUresourcetype::CU_RESOURCE_TYPE_PITCH2D => {
            // SAFETY: the caller's promise.
            let pitched = unsafe { raw.res.pitch2D };
            let format = texel_format(pitched.format, pitched.numChannels)?;
            let (width, height, pitch) = (pitched.width, pitched.height, pitched.pitchInBytes);
            demand(pitched.devPtr != 0 && pitched.devPtr.is_multiple_of(TEXTURE_ALIGNMENT))?;
            demand(width <= MOST_PITCHED[0] && height <= MOST_PITCHED[1])?;
            // Rows may overlap.
            demand(pitch.is_multiple_of(TEXTURE_PITCH_ALIGNMENT) && pitch <= MOST_PITCH)?;
            let found = texels(pitched.devPtr, format, pitched.numChannels, [width, height], pitch);
            Ok((Texels { shape: Shape::Plain { rank: 2 }, ..found }, None))
        }
        _ => Err(INVALID_VALUE),
    }
}

/// Reads texels in another format of the same size, or some of the layers.
fn view(texels: Texels, raw: &CUDA_RESOURCE_VIEW_DESC) -> Answer<Texels> {
    let mut seen = texels;
    demand(raw.reserved == [0; 16])?;
    (seen.format, seen.channels) = view_format(raw.format)?.ok_or(INVALID_VALUE)?;
    demand(seen.texel_bytes() == texels.texel_bytes())?;
    let sizes = [(raw.width, 0), (raw.height, 1), (raw.depth, 2)];
    let fits = |(size, axis): (usize, usize)| {
        let has = texels.size.get(axis).copied().unwrap_or(1) as usize;
        size == has || (size == 0 && has == 1)
    };
    let is_layered = matches!(texels.shape, Shape::Layered { .. } | Shape::Cube { .. });
    demand(sizes.into_iter().all(|(size, axis)| (axis == 2 && is_layered) || fits((size, axis))))?;
    demand(raw.firstMipmapLevel == 0 && raw.lastMipmapLevel == 0)?;
    demand(raw.firstLayer <= raw.lastLayer && raw.lastLayer < texels.layers)?;
    let layers = raw.lastLayer - raw.firstLayer + 1;
    match texels.shape {
        // A cube without layers is seen whole: its view names no layers, or all faces.
        Shape::Cube { is_layered: false } => {
            demand(raw.firstLayer == 0 && (raw.lastLayer == 0 || layers == texels.layers))?;
            return Ok(seen);
        }
        // Kernels read any face of a cube, so that a view has all six of each.
        Shape::Cube { is_layered: true } => demand(layers.is_multiple_of(FACES as u32))?,
        _ => {}
    }
    if is_layered {
        seen.address += texels.slice * u64::from(raw.firstLayer);
        seen.layers = layers;
    }
    Ok(seen)
}

fn address_mode(mode: CUaddress_mode) -> Answer<AddressMode> {
    Ok(match mode {
        CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP => AddressMode::Wrap,
        CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP => AddressMode::Clamp,
        CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR => AddressMode::Mirror,
        CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER => AddressMode::Border,
        _ => return Err(INVALID_VALUE),
    })
}

fn sampler(texels: &Texels, raw: &CUDA_TEXTURE_DESC) -> Answer<Sampler> {
    demand(raw.flags & !FLAGS == 0 && raw.reserved == [0; 12])?;
    let is_cube = matches!(texels.shape, Shape::Cube { .. });
    demand(is_cube || raw.flags & CU_TRSF_SEAMLESS_CUBEMAP == 0)?;
    if raw.flags & CU_TRSF_SRGB != 0 {
        return Err(NOT_SUPPORTED);
    }
    let is_linear = match raw.filterMode {
        CUfilter_mode::CU_TR_FILTER_MODE_POINT => false,
        CUfilter_mode::CU_TR_FILTER_MODE_LINEAR => true,
        _ => return Err(INVALID_VALUE),
    };
    demand(raw.mipmapFilterMode.0 <= CUfilter_mode::CU_TR_FILTER_MODE_LINEAR.0)?;
    let is_normalised = raw.flags & CU_TRSF_NORMALIZED_COORDINATES != 0;
    let is_small = texels.format.bytes() < 4 && !texels.format.is_float();
    let reads_numbers = is_small && raw.flags & CU_TRSF_READ_AS_INTEGER == 0;
    let is_linear = is_linear && texels.shape != Shape::Linear;
    let mut modes = [AddressMode::Clamp; 3];
    for (axis, (mode, raw)) in modes.iter_mut().zip(raw.addressMode).enumerate() {
        // Modes of dimensions that are not there may be any.
        *mode = match address_mode(raw) {
            Err(code) if axis < texels.shape.rank() => return Err(code),
            known => known.unwrap_or(AddressMode::Clamp),
        };
    }
    if !is_normalised {
        // These need coordinates from 0 to 1.
        let repeats = |mode: &&mut AddressMode| matches!(mode, AddressMode::Wrap | AddressMode::Mirror);
        modes.iter_mut().filter(repeats).for_each(|mode| *mode = AddressMode::Clamp);
    }
    Ok(Sampler { modes, is_linear, is_normalised, reads_numbers, border: raw.borderColor })
}

/// `cuTexObjectCreate`.
///
/// # Safety
/// The member of the union that the type of the resource names is initialised.
pub(crate) unsafe fn create_texture(context: &Context, descriptions: Descriptions) -> Answer<u64> {
    // SAFETY: the caller's promise.
    let (mut texels, array) = unsafe { resource(&descriptions.resource)? };
    // Views of memory without an array have no effect, whatever they say.
    if let Some(raw) = descriptions.view.as_ref().filter(|_| array.is_some()) {
        texels = view(texels, raw)?;
    }
    let texture = Texture { texels, sampler: sampler(&texels, &descriptions.texture)? };
    Ok(lock(&TEXTURES).insert(Arc::new(Object { texture, descriptions, context: context.id })))
}

/// `cuSurfObjectCreate`.
///
/// # Safety
/// As [`create_texture`].
pub(crate) unsafe fn create_surface(context: &Context, raw: &CUDA_RESOURCE_DESC) -> Answer<u64> {
    // SAFETY: the caller's promise.
    let (texels, array) = unsafe { resource(raw)? };
    // The array need not be one for surfaces.
    demand(array.is_some())?;
    let texture = CUDA_TEXTURE_DESC::default();
    let sampler = sampler(&texels, &texture)?;
    let descriptions = Descriptions { resource: *raw, texture, view: None };
    let object = Object { texture: Texture { texels, sampler }, descriptions, context: context.id };
    Ok(lock(&SURFACES).insert(Arc::new(object)))
}

pub(crate) fn texture(handle: u64) -> Answer<Arc<Object>> {
    lock(&TEXTURES).get(handle).cloned().ok_or(INVALID_VALUE)
}

pub(crate) fn surface(handle: u64) -> Answer<Arc<Object>> {
    lock(&SURFACES).get(handle).cloned().ok_or(INVALID_VALUE)
}

/// `cuTexObjectDestroy`, which accepts any number.
pub(crate) fn destroy_texture(handle: u64) -> Answer {
    drop(lock(&TEXTURES).remove(handle));
    forget_views();
    Ok(())
}

/// `cuSurfObjectDestroy`, which accepts any number.
pub(crate) fn destroy_surface(handle: u64) -> Answer {
    drop(lock(&SURFACES).remove(handle));
    forget_views();
    Ok(())
}

/// Removes the objects of a context that has ended.
pub(crate) fn forget_context(context: &Context) {
    lock(&TEXTURES).retain(|object| object.context != context.id);
    lock(&SURFACES).retain(|object| object.context != context.id);
    forget_views();
}

/// The numbers of live texture and surface objects.
pub(crate) fn counts() -> (usize, usize) {
    (lock(&TEXTURES).len(), lock(&SURFACES).len())
}
