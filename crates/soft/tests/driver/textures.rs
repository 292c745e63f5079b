//! Textures and surfaces that kernels use wrongly, and instructions that compilers seldom give.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_soft::control;
use cuda_sys::*;

const INVALID_VALUE: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const INVALID_HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;
const FLOAT: CUarray_format = CUarray_format::CU_AD_FORMAT_FLOAT;

/// A kernel of one thread, which stores `%r1` to `%r4`. `%rd1` has the handle of the object.
fn kernel_text(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 object, .param .u64 out) {{\n\
         .reg .b16 %h<5>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;\n\
         ld.param.u64 %rd1, [object]; ld.param.u64 %rd2, [out];\n\
         mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0;\n{body}\n\
         st.global.v4.b32 [%rd2], {{%r1, %r2, %r3, %r4}};\nret;\n}}\n"
    )
}

/// What the kernel stores, or the code that its device is lost with.
fn run_on(driver: &Driver, object: u64, body: &str) -> Result<Vec<u32>, CUresult> {
    let library = load(driver, &kernel_text(body));
    let (mut object, mut out) = (object, words(driver, 4));
    let mut arguments: [*mut c_void; 2] = [(&raw mut object).cast(), (&raw mut out).cast()];
    let function = function(driver, library, "k");
    unsafe {
        let params = arguments.as_mut_ptr();
        let none = null_mut();
        assert_eq!(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, none, params, null_mut()), OK);
        match driver.cuStreamSynchronize(none) {
            OK => {}
            code => return Err(code),
        }
        let found = read(driver, out, 4);
        assert_eq!(driver.cuMemFree(out), OK);
        assert_eq!(driver.cuLibraryUnload(library), OK);
        Ok(found)
    }
}

fn array(driver: &Driver, size: [usize; 3], format: CUarray_format, channels: u32, flags: u32) -> CUarray {
    let raw = CUDA_ARRAY3D_DESCRIPTOR {
        Width: size[0],
        Height: size[1],
        Depth: size[2],
        Format: format,
        NumChannels: channels,
        Flags: flags,
    };
    let mut array = null_mut();
    assert_eq!(unsafe { driver.cuArray3DCreate(&mut array, &raw) }, OK);
    array
}

fn put<T>(driver: &Driver, array: CUarray, rows: usize, content: &[T]) {
    let width = size_of_val(content) / rows;
    let raw = CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: content.as_ptr().cast(),
        srcPitch: width,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: array,
        WidthInBytes: width,
        Height: rows,
        ..Default::default()
    };
    assert_eq!(unsafe { driver.cuMemcpy2D(&raw) }, OK);
}

fn row(driver: &Driver, array: CUarray, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    assert_eq!(unsafe { driver.cuMemcpyAtoH(content.as_mut_ptr().cast(), array, 0, bytes) }, OK);
    content
}

fn resource(array: CUarray) -> CUDA_RESOURCE_DESC {
    let mut raw = CUDA_RESOURCE_DESC::default();
    raw.res.array.hArray = array;
    raw
}

fn texture(driver: &Driver, array: CUarray, flags: u32) -> CUtexObject {
    let mode = [CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP; 3];
    let raw = CUDA_TEXTURE_DESC { addressMode: mode, flags, ..Default::default() };
    let mut object = 0;
    assert_eq!(unsafe { driver.cuTexObjectCreate(&mut object, &resource(array), &raw, null()) }, OK);
    object
}

fn surface(driver: &Driver, array: CUarray) -> CUsurfObject {
    let mut object = 0;
    assert_eq!(unsafe { driver.cuSurfObjectCreate(&mut object, &resource(array)) }, OK);
    object
}

fn bits(values: [f32; 4]) -> Vec<u32> {
    values.map(f32::to_bits).to_vec()
}

#[test]
fn levels_gradients_offsets_halves_and_queries() {
    let driver = &session();
    let image = array(driver, [4, 3, 0], FLOAT, 2, 0);
    let pixels: Vec<f32> = (0..24).map(|i| i as f32).collect();
    put(driver, image, 3, &pixels);
    let object = texture(driver, image, CU_TRSF_NORMALIZED_COORDINATES);
    let run = |body: &str| run_on(driver, object, body).unwrap();
    // The texel (2, 1) at 0.625, 0.5.
    let at = "mov.f32 %r5, 0.625; mov.f32 %r6, 0.5; mov.s32 %r7, 1; mov.s32 %r8, -1;";
    let wanted = bits([12.0, 13.0, 0.0, 0.0]);
    for form in [
        "tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}];",
        "tex.base.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}];",
        "tex.level.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}], %r5;",
        "tex.grad.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}], {%r5, %r6}, {%r5, %r6};",
    ] {
        assert_eq!(run(&format!("{at} {form}")), wanted, "{form}");
    }
    let found = run(&format!(
        "{at} tex.2d.v4.f32.f32 {{%r1, %r2, _, %r4}}|%p1, [%rd1, {{%r5, %r6}}], {{%r7, %r8}};\n\
         selp.b32 %r3, 5, 6, %p1;"
    ));
    assert_eq!(found, [6.0_f32.to_bits(), 7.0_f32.to_bits(), 5, 0]);
    let found = run(&format!("{at} tex.2d.v2.f16x2.f32 {{%r1, %r2}}, [%rd1, {{%r5, %r6}}];"));
    assert_eq!(found, [0x4a80_4a00, 0, 0, 0]);
    let found = run(&format!(
        "{at} tex.2d.v4.f16.f32 {{%h1, %h2, %h3, %h4}}, [%rd1, {{%r5, %r6}}]; cvt.u32.u16 %r1, %h2;"
    ));
    assert_eq!(found, [0x4a80, 0, 0, 0]);
    // Integers count texels, whatever the sampler.
    let found = run("mov.s32 %r5, 3; mov.s32 %r6, 2;\n\
                     tex.2d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}];");
    assert_eq!(found, bits([22.0, 23.0, 0.0, 0.0]));
    let found = run("txq.width.b32 %r1, [%rd1]; txq.height.b32 %r2, [%rd1]; txq.depth.b32 %r3, [%rd1];\n\
                     txq.normalized_coords.b32 %r4, [%rd1];");
    assert_eq!(found, [4, 3, 1, 1]);
    unsafe {
        assert_eq!(driver.cuTexObjectDestroy(object), OK);
        assert_eq!(driver.cuArrayDestroy(image), OK);
    }
}

#[test]
fn surfaces_by_bytes_by_texels_and_in_place() {
    let driver = &session();
    let line =
        array(driver, [8, 0, 0], CUarray_format::CU_AD_FORMAT_SIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST);
    put(driver, line, 1, &[10_i32, -20, 30, 40, 50, 60, 70, 80]);
    let object = surface(driver, line);
    let run = |body: &str| run_on(driver, object, body).unwrap();
    assert_eq!(run("suld.b.1d.v4.b32.trap {%r1, %r2, %r3, %r4}, [%rd1, {16}];"), [50, 60, 70, 80]);
    assert_eq!(run("suld.b.1d.b8.trap {%r1}, [%rd1, {4}];")[0], 0xec);
    // Outside: the nearest access inside, or nothing.
    assert_eq!(run("suld.b.1d.v2.b32.clamp {%r1, %r2}, [%rd1, {64}];"), [70, 80, 0, 0]);
    assert_eq!(run("mov.u32 %r1, 9; suld.b.1d.b32.zero {%r1}, [%rd1, {32}];")[0], 0);
    assert_eq!(run("sust.b.1d.b32.zero [%rd1, {-4}], {77}; sust.b.1d.b32.clamp [%rd1, {-4}], {11};")[0], 0);
    run("sured.b.add.1d.s32.trap [%rd1, {4}], 5; sured.b.min.1d.s32.trap [%rd1, {8}], -1;\n\
         sured.p.max.1d.b32.trap [%rd1, {0}], -3; sured.b.or.1d.b32.trap [%rd1, {12}], 3;");
    let wanted: Vec<u8> = [11_i32, -15, -1, 43].iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(row(driver, line, 16), wanted);
    assert_eq!(run("suq.width.b32 %r1, [%rd1]; suq.height.b32 %r2, [%rd1];"), [8, 1, 0, 0]);
    let bytes =
        array(driver, [4, 0, 0], CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8, 2, CUDA_ARRAY3D_SURFACE_LDST);
    put(driver, bytes, 1, &[1_u8, 2, 3, 4, 5, 6, 7, 8]);
    let other = surface(driver, bytes);
    run_on(driver, other, "sust.p.1d.v2.b32.trap [%rd1, {1}], {200, 300};").unwrap();
    assert_eq!(row(driver, bytes, 8), [1, 2, 200, 255, 5, 6, 7, 8]);
    unsafe {
        assert_eq!(driver.cuSurfObjectDestroy(object), OK);
        assert_eq!(driver.cuSurfObjectDestroy(other), OK);
        assert_eq!(driver.cuArrayDestroy(line), OK);
        assert_eq!(driver.cuArrayDestroy(bytes), OK);
    }
}

/// All words of an array of that width and height.
fn rows_of_words(driver: &Driver, array: CUarray, [width, height]: [usize; 2]) -> Vec<u32> {
    let mut content = vec![0_u32; width * height];
    let raw = CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        srcArray: array,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        dstHost: content.as_mut_ptr().cast(),
        dstPitch: width * 4,
        WidthInBytes: width * 4,
        Height: height,
        ..Default::default()
    };
    assert_eq!(unsafe { driver.cuMemcpy2D(&raw) }, OK);
    content
}

/// A clamped access never leaves its row: it moves to the nearest place of its size and alignment,
/// and where the row is shorter, the elements beyond its end read as zero and are not written.
#[test]
fn clamped_accesses_wider_than_a_row() {
    let driver = &session();
    let words = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32;
    let image = array(driver, [3, 2, 0], words, 1, CUDA_ARRAY3D_SURFACE_LDST);
    let content = || rows_of_words(driver, image, [3, 2]);
    put(driver, image, 2, &[1_u32, 2, 3, 4, 5, 6]);
    let object = surface(driver, image);
    let run = |body: &str| run_on(driver, object, body).unwrap();
    // The last row is the end of the array.
    for (x, y, wanted) in [(0, 0, [1, 2, 3, 0]), (0, 1, [4, 5, 6, 0]), (99, 9, [4, 5, 6, 0])] {
        let body = format!("suld.b.2d.v4.b32.clamp {{%r1, %r2, %r3, %r4}}, [%rd1, {{{x}, {y}}}];");
        assert_eq!(run(&body), wanted, "{x}, {y}");
    }
    assert_eq!(run("suld.b.2d.v2.b32.clamp {%r1, %r2}, [%rd1, {8, 1}];"), [4, 5, 0, 0]);
    run("mov.u32 %r1, 9; sust.b.2d.v4.b32.clamp [%rd1, {0, 0}], {%r1, %r1, %r1, %r1};");
    assert_eq!(content(), [9, 9, 9, 4, 5, 6]);
    run("mov.u32 %r1, 8; sust.b.2d.v4.b32.clamp [%rd1, {-16, 7}], {%r1, %r1, %r1, %r1};");
    assert_eq!(content(), [9, 9, 9, 8, 8, 8]);
    // No element fits.
    let narrow = array(driver, [1, 1, 0], words, 1, CUDA_ARRAY3D_SURFACE_LDST);
    put(driver, narrow, 1, &[7_u32]);
    let other = surface(driver, narrow);
    let body = "mov.u64 %rd3, -1; sust.b.2d.b64.clamp [%rd1, {0, 0}], {%rd3};\n\
                suld.b.2d.b64.clamp {%rd3}, [%rd1, {0, 0}]; cvt.u32.u64 %r1, %rd3;";
    assert_eq!(run_on(driver, other, body).unwrap(), [0; 4]);
    assert_eq!(row(driver, narrow, 4), [7, 0, 0, 0]);
    unsafe {
        assert_eq!(driver.cuSurfObjectDestroy(object), OK);
        assert_eq!(driver.cuSurfObjectDestroy(other), OK);
        assert_eq!(driver.cuArrayDestroy(image), OK);
        assert_eq!(driver.cuArrayDestroy(narrow), OK);
    }
}

/// An array of cubes of one texel a face, face `i` holding `i`.
fn cubes(driver: &Driver, flags: u32, faces: u32) -> CUarray {
    let image = array(driver, [1, 1, faces as usize], FLOAT, 1, CUDA_ARRAY3D_CUBEMAP | flags);
    let content: Vec<f32> = (0..faces).map(|face| face as f32).collect();
    let raw = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: content.as_ptr().cast(),
        srcPitch: 4,
        srcHeight: 1,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: image,
        WidthInBytes: 4,
        Height: 1,
        Depth: faces as usize,
        ..Default::default()
    };
    assert_eq!(unsafe { driver.cuMemcpy3D(&raw) }, OK);
    image
}

/// A texture of some layers of an array of 1 x 1 texels.
fn seen(driver: &Driver, array: CUarray, [first, last]: [u32; 2]) -> Result<CUtexObject, CUresult> {
    let view = CUDA_RESOURCE_VIEW_DESC {
        format: CUresourceViewFormat::CU_RES_VIEW_FORMAT_FLOAT_1X32,
        width: 1,
        height: 1,
        firstLayer: first,
        lastLayer: last,
        ..Default::default()
    };
    let mut object = 0;
    match unsafe { driver.cuTexObjectCreate(&mut object, &resource(array), &Default::default(), &view) } {
        OK => Ok(object),
        code => Err(code),
    }
}

/// Directions reach all six faces, so that a view without some of them would lead outside.
#[test]
fn views_of_cubes_have_whole_cubes() {
    let driver = &session();
    let (one, two) = (cubes(driver, 0, 6), cubes(driver, CUDA_ARRAY3D_LAYERED, 12));
    // Towards -z, which is the last face.
    let direction = "mov.f32 %r5, 0.0; mov.f32 %r6, 0.0; mov.f32 %r7, -1.0; mov.u32 %r8, 9;";
    let plain = "tex.cube.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6, %r7, %r7}];";
    let layered = "tex.acube.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r8, %r5, %r6, %r7}];";
    for (array, layers, form, wanted) in [
        (one, [0, 0], plain, 5.0),
        (one, [0, 5], plain, 5.0),
        (two, [0, 5], layered, 5.0),
        (two, [6, 11], layered, 11.0),
        (two, [0, 11], layered, 11.0),
    ] {
        let object = seen(driver, array, layers).unwrap();
        let found = run_on(driver, object, &format!("{direction} {form}")).unwrap();
        assert_eq!(found, bits([wanted, 0.0, 0.0, 0.0]), "{layers:?}");
        assert_eq!(unsafe { driver.cuTexObjectDestroy(object) }, OK);
    }
    for (array, layers) in [(one, [0, 3]), (one, [1, 5]), (two, [0, 0]), (two, [7, 11]), (two, [0, 6])] {
        assert_eq!(seen(driver, array, layers), Err(INVALID_VALUE), "{layers:?}");
    }
    unsafe {
        assert_eq!(driver.cuArrayDestroy(one), OK);
        assert_eq!(driver.cuArrayDestroy(two), OK);
    }
}

/// Runs a body that loses the device, in a process of its own.
fn loses(test: &str, body: &str, parts: &[&str], object: impl FnOnce(&Driver, CUarray) -> u64) {
    alone(&format!("textures::{test}"), || {
        let driver = &session();
        let image = array(driver, [4, 4, 0], FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST);
        let object = object(driver, image);
        assert!(run_on(driver, object, body).is_err());
        let sentence = control::last_fault().unwrap();
        for part in parts {
            assert!(sentence.contains(part), "{part}: {sentence}");
        }
    });
}

const SAMPLE: &str = "tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {0.5, 0.5}];";

#[test]
fn a_texture_object_that_is_destroyed() {
    let parts = ["kernel `k` at ptx line 8", "is not the handle of a texture object"];
    loses("a_texture_object_that_is_destroyed", SAMPLE, &parts, |driver, image| {
        let object = texture(driver, image, 0);
        assert_eq!(unsafe { driver.cuTexObjectDestroy(object) }, OK);
        assert_eq!(unsafe { driver.cuTexObjectDestroy(object) }, OK, "as a GPU's driver");
        object
    });
}

#[test]
fn a_texture_whose_array_is_destroyed() {
    let parts = ["array", "cuArrayDestroy"];
    loses("a_texture_whose_array_is_destroyed", SAMPLE, &parts, |driver, image| {
        let object = texture(driver, image, 0);
        assert_eq!(unsafe { driver.cuArrayDestroy(image) }, OK);
        object
    });
}

#[test]
fn an_instruction_of_another_geometry() {
    let body = "tex.3d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {0.5, 0.5, 0.5, 0.5}];";
    let parts = ["illegal instruction", "Plain { rank: 3 }", "Plain { rank: 2 }"];
    loses("an_instruction_of_another_geometry", body, &parts, |driver, image| texture(driver, image, 0));
}

#[test]
fn a_surface_access_outside() {
    let body = "sust.b.2d.b32.trap [%rd1, {16, 1}], {7};";
    let parts = ["byte 16 of row 1", "16 bytes in each of 4 rows"];
    loses("a_surface_access_outside", body, &parts, surface);
}

#[test]
fn a_texture_is_no_surface() {
    let body = "suld.b.2d.b32.trap {%r1}, [%rd1, {0, 0}];";
    loses("a_texture_is_no_surface", body, &["is not the handle of a surface object"], |driver, image| {
        texture(driver, image, 0)
    });
}

#[test]
fn what_is_not_supported() {
    let driver = &session();
    let image = array(driver, [4, 4, 0], CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8, 4, 0);
    let (mut object, mut other) = (0, null_mut());
    let srgb = CUDA_TEXTURE_DESC { flags: CU_TRSF_SRGB, ..Default::default() };
    let mut mipmapped = resource(image);
    mipmapped.resType = CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    let compressed = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 4,
        Height: 4,
        Format: CUarray_format::CU_AD_FORMAT_BC1_UNORM,
        NumChannels: 4,
        ..Default::default()
    };
    unsafe {
        assert_eq!(driver.cuTexObjectCreate(&mut object, &resource(image), &srgb, null()), NS);
        assert_eq!(driver.cuTexObjectCreate(&mut object, &mipmapped, &Default::default(), null()), NS);
        assert_eq!(driver.cuArray3DCreate(&mut other, &compressed), NS);
        assert_eq!(driver.cuMipmappedArrayCreate(null_mut(), null(), 1), NS);
        assert_eq!(driver.cuArrayDestroy(image), OK);
    }
}

#[test]
fn arrays_and_objects_are_counted_and_end_with_their_context() {
    leaves_nothing("textures::arrays_and_objects_are_counted_and_end_with_their_context", || {
        let driver = &session();
        let image = array(driver, [4, 4, 0], FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST);
        let (object, _) = (texture(driver, image, 0), surface(driver, image));
        let counts: Vec<_> = control::live_objects().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counts, [("arrays", 1), ("texture objects", 1), ("surface objects", 1)]);
        unsafe {
            assert_eq!(driver.cuDevicePrimaryCtxReset(0), OK);
            let mut context = null_mut();
            assert_eq!(driver.cuDevicePrimaryCtxRetain(&mut context, 0), OK);
            assert_eq!(driver.cuTexObjectDestroy(object), OK);
            assert_eq!(driver.cuArrayDestroy(image), INVALID_HANDLE);
        }
    });
}
