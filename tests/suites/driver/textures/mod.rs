//! Textures, surfaces and arrays.

mod arrays;
mod sampling;
mod surfaces;

use std::ffi::c_void;
use std::ops::Deref;
use std::ptr::null;

use cuda_sys::*;

use crate::calls;
use crate::common::*;

pub(crate) const WRAP: CUaddress_mode = CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP;
pub(crate) const CLAMP: CUaddress_mode = CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP;
pub(crate) const MIRROR: CUaddress_mode = CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR;
pub(crate) const BORDER: CUaddress_mode = CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER;
pub(crate) const FLOAT: CUarray_format = CUarray_format::CU_AD_FORMAT_FLOAT;
pub(crate) const BYTE: CUarray_format = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8;
pub(crate) const INVALID_HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;

/// A session with the kernels of `textures.cu`.
pub(crate) struct Textures {
    session: Session,
    library: CUlibrary,
}

impl Deref for Textures {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Drop for Textures {
    fn drop(&mut self) {
        unsafe { self.session.cuLibraryUnload(self.library) };
    }
}

pub(crate) fn textures() -> Textures {
    let session = session();
    let library = calls::load(&session, include_str!("../../../kernels/textures.ptx"));
    Textures { session, library }
}

/// An argument of a kernel, with the alignment of every type.
#[repr(align(16))]
#[derive(Clone, Copy)]
pub(crate) struct Argument([u8; 16]);

macro_rules! arguments {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Argument {
            fn from(value: $ty) -> Self {
                let (mut bytes, value) = ([0; 16], value.to_ne_bytes());
                bytes[..value.len()].copy_from_slice(&value);
                Argument(bytes)
            }
        }
    )*};
}
arguments!(u64, i32, f32);

impl From<[f32; 2]> for Argument {
    fn from([x, y]: [f32; 2]) -> Self {
        (u64::from(x.to_bits()) | u64::from(y.to_bits()) << 32).into()
    }
}

pub(crate) fn descriptor(
    [width, height, depth]: [usize; 3],
    format: CUarray_format,
    channels: u32,
    flags: u32,
) -> CUDA_ARRAY3D_DESCRIPTOR {
    CUDA_ARRAY3D_DESCRIPTOR {
        Width: width,
        Height: height,
        Depth: depth,
        Format: format,
        NumChannels: channels,
        Flags: flags,
    }
}

/// A texture that clamps and takes the nearest texel.
pub(crate) fn nearest() -> CUDA_TEXTURE_DESC {
    CUDA_TEXTURE_DESC { addressMode: [CLAMP; 3], ..Default::default() }
}

/// A texture with a linear filter.
pub(crate) fn linear(mode: CUaddress_mode, is_normalised: bool) -> CUDA_TEXTURE_DESC {
    CUDA_TEXTURE_DESC {
        addressMode: [mode; 3],
        filterMode: CUfilter_mode::CU_TR_FILTER_MODE_LINEAR,
        flags: if is_normalised { CU_TRSF_NORMALIZED_COORDINATES } else { 0 },
        ..Default::default()
    }
}

pub(crate) fn of_array(array: CUarray) -> CUDA_RESOURCE_DESC {
    let mut raw =
        CUDA_RESOURCE_DESC { resType: CUresourcetype::CU_RESOURCE_TYPE_ARRAY, ..Default::default() };
    raw.res.array.hArray = array;
    raw
}

pub(crate) fn of_linear(address: CUdeviceptr, format: CUarray_format, bytes: usize) -> CUDA_RESOURCE_DESC {
    let mut raw =
        CUDA_RESOURCE_DESC { resType: CUresourcetype::CU_RESOURCE_TYPE_LINEAR, ..Default::default() };
    raw.res.linear = CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3 {
        devPtr: address,
        format,
        numChannels: 1,
        sizeInBytes: bytes,
    };
    raw
}

/// The description of a copy between an array, whole, and the host.
pub(crate) fn whole(
    array: CUarray,
    extent: [usize; 3],
    host: *mut c_void,
    to_array: bool,
) -> CUDA_MEMCPY3D_v2 {
    let [width, height, depth] = extent;
    let mut raw = CUDA_MEMCPY3D_v2 {
        WidthInBytes: width,
        Height: height,
        Depth: depth,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        ..Default::default()
    };
    if to_array {
        (raw.srcHost, raw.srcPitch, raw.srcHeight) = (host, width, height);
        (raw.dstMemoryType, raw.dstArray) = (CUmemorytype::CU_MEMORYTYPE_ARRAY, array);
    } else {
        (raw.dstHost, raw.dstPitch, raw.dstHeight) = (host, width, height);
        (raw.srcMemoryType, raw.srcArray) = (CUmemorytype::CU_MEMORYTYPE_ARRAY, array);
    }
    raw
}

impl Textures {
    pub(crate) fn try_array(&self, raw: &CUDA_ARRAY3D_DESCRIPTOR) -> Result<CUarray, CUresult> {
        let mut array = std::ptr::null_mut();
        match unsafe { self.cuArray3DCreate(&mut array, raw) } {
            OK => Ok(array),
            code => Err(code),
        }
    }

    /// An array with that content.
    pub(crate) fn array<T>(&self, raw: &CUDA_ARRAY3D_DESCRIPTOR, content: &[T]) -> CUarray {
        let array = self.try_array(raw).unwrap();
        if !content.is_empty() {
            let extent = extent_of(raw, content);
            let host = content.as_ptr().cast_mut().cast();
            assert_eq!(unsafe { self.cuMemcpy3D(&whole(array, extent, host, true)) }, OK);
        }
        array
    }

    /// What an array of singles holds.
    pub(crate) fn content(&self, array: CUarray, raw: &CUDA_ARRAY3D_DESCRIPTOR) -> Vec<f32> {
        let mut content = vec![0.0_f32; raw.Width * raw.Height.max(1) * raw.Depth.max(1)];
        let extent = extent_of(raw, &content);
        let host = content.as_mut_ptr().cast();
        assert_eq!(unsafe { self.cuMemcpy3D(&whole(array, extent, host, false)) }, OK);
        content
    }

    pub(crate) fn try_texture(
        &self,
        resource: &CUDA_RESOURCE_DESC,
        raw: &CUDA_TEXTURE_DESC,
    ) -> Result<CUtexObject, CUresult> {
        let mut object = 0;
        match unsafe { self.cuTexObjectCreate(&mut object, resource, raw, null()) } {
            OK => Ok(object),
            code => Err(code),
        }
    }

    pub(crate) fn texture(&self, resource: &CUDA_RESOURCE_DESC, raw: &CUDA_TEXTURE_DESC) -> CUtexObject {
        self.try_texture(resource, raw).unwrap()
    }

    pub(crate) fn surface(&self, array: CUarray) -> CUsurfObject {
        let mut object = 0;
        assert_eq!(unsafe { self.cuSurfObjectCreate(&mut object, &of_array(array)) }, OK);
        object
    }

    pub(crate) fn end_texture(&self, object: CUtexObject) {
        assert_eq!(unsafe { self.cuTexObjectDestroy(object) }, OK);
    }

    pub(crate) fn end_surface(&self, object: CUsurfObject) {
        assert_eq!(unsafe { self.cuSurfObjectDestroy(object) }, OK);
    }

    pub(crate) fn end_array(&self, array: CUarray) {
        assert_eq!(unsafe { self.cuArrayDestroy(array) }, OK);
    }

    /// Device memory with that content.
    pub(crate) fn memory(&self, content: &[f32]) -> CUdeviceptr {
        let address = self.words(content.len());
        let bytes = size_of_val(content);
        assert_eq!(unsafe { self.cuMemcpyHtoD(address, content.as_ptr().cast(), bytes) }, OK);
        address
    }

    /// Runs a kernel on as many threads as there are elements, and waits for it.
    pub(crate) fn run_kernel(&self, name: &str, [width, height]: [u32; 2], mut arguments: Vec<Argument>) {
        let function = calls::function(self, self.library, name);
        let mut pointers: Vec<*mut c_void> =
            arguments.iter_mut().map(|argument| argument.0.as_mut_ptr().cast()).collect();
        // A copy from pageable memory may return before the legacy stream has made it, and the
        // session's stream does not wait for that one.
        assert_eq!(unsafe { self.cuStreamSynchronize(std::ptr::null_mut()) }, OK);
        let (blocks_x, blocks_y) = (width.div_ceil(16), height.div_ceil(8));
        let launched = unsafe {
            let params = pointers.as_mut_ptr();
            let none = std::ptr::null_mut();
            self.cuLaunchKernel(function, blocks_x, blocks_y, 1, 16, 8, 1, 0, self.stream, params, none)
        };
        assert_eq!(launched, OK);
        self.wait();
    }

    /// Singles in device memory.
    pub(crate) fn singles(&self, address: CUdeviceptr, n: usize) -> Vec<f32> {
        calls::read(self, address, n).into_iter().map(f32::from_bits).collect()
    }
}

/// Bytes of a row, rows, slices.
fn extent_of<T>(raw: &CUDA_ARRAY3D_DESCRIPTOR, content: &[T]) -> [usize; 3] {
    let [rows, slices] = [raw.Height, raw.Depth].map(|size| size.max(1));
    [size_of_val(content) / rows / slices, rows, slices]
}
