//! Texture and surface object calls.

use cuda_sys::{
    CUDA_RESOURCE_DESC_v1, CUDA_RESOURCE_VIEW_DESC_v1, CUDA_TEXTURE_DESC_v1, CUsurfObject_v1, CUtexObject_v1,
};

use super::table::Entries;
use crate::device::context::current;
use crate::driver::pointer::{given, put, required};
use crate::memory::texture::{self, Descriptions};

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuTexObjectCreate,
        cuTexObjectDestroy,
        cuTexObjectGetResourceDesc,
        cuTexObjectGetTextureDesc,
        cuTexObjectGetResourceViewDesc,
        cuSurfObjectCreate,
        cuSurfObjectDestroy,
        cuSurfObjectGetResourceDesc,
        ..entries
    }
}

entries! {
    live fn cuTexObjectCreate(
        p_tex_object: *mut CUtexObject_v1,
        p_res_desc: *const CUDA_RESOURCE_DESC_v1,
        p_tex_desc: *const CUDA_TEXTURE_DESC_v1,
        p_res_view_desc: *const CUDA_RESOURCE_VIEW_DESC_v1,
    ) {
        required(p_tex_object)?;
        let view = if p_res_view_desc.is_null() { None } else { Some(*given(p_res_view_desc)?) };
        let descriptions = Descriptions { resource: *given(p_res_desc)?, texture: *given(p_tex_desc)?, view };
        put(p_tex_object, texture::create_texture(&*current()?, descriptions)?)
    }

    live fn cuTexObjectDestroy(tex_object: CUtexObject_v1) {
        texture::destroy_texture(tex_object)
    }

    live fn cuTexObjectGetResourceDesc(p_res_desc: *mut CUDA_RESOURCE_DESC_v1, tex_object: CUtexObject_v1) {
        required(p_res_desc)?;
        put(p_res_desc, texture::texture(tex_object)?.descriptions.resource)
    }

    live fn cuTexObjectGetTextureDesc(p_tex_desc: *mut CUDA_TEXTURE_DESC_v1, tex_object: CUtexObject_v1) {
        required(p_tex_desc)?;
        let raw = texture::texture(tex_object)?.descriptions.texture;
        // A GPU's driver tells no colour.
        put(p_tex_desc, CUDA_TEXTURE_DESC_v1 { borderColor: [0.0; 4], ..raw })
    }

    live fn cuTexObjectGetResourceViewDesc(
        p_res_view_desc: *mut CUDA_RESOURCE_VIEW_DESC_v1,
        tex_object: CUtexObject_v1,
    ) {
        required(p_res_view_desc)?;
        // Without a view nothing is written.
        match texture::texture(tex_object)?.descriptions.view {
            Some(view) => put(p_res_view_desc, view),
            None => Ok(()),
        }
    }

    live fn cuSurfObjectCreate(p_surf_object: *mut CUsurfObject_v1, p_res_desc: *const CUDA_RESOURCE_DESC_v1) {
        required(p_surf_object)?;
        put(p_surf_object, texture::create_surface(&*current()?, given(p_res_desc)?)?)
    }

    live fn cuSurfObjectDestroy(surf_object: CUsurfObject_v1) {
        texture::destroy_surface(surf_object)
    }

    live fn cuSurfObjectGetResourceDesc(p_res_desc: *mut CUDA_RESOURCE_DESC_v1, surf_object: CUsurfObject_v1) {
        required(p_res_desc)?;
        put(p_res_desc, texture::surface(surf_object)?.descriptions.resource)
    }
}
