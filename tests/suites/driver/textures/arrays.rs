//! Arrays: creation, descriptions, copies, copies in graphs; and the descriptions of objects.

use std::ptr::{null, null_mut};

use cuda_sys::*;

use super::*;

const LAYERED: u32 = CUDA_ARRAY3D_LAYERED;

#[test]
fn arrays_that_cannot_be() {
    let t = textures();
    for (size, channels, flags) in [
        ([0, 0, 0], 1, 0),
        ([4, 0, 2], 1, 0),
        ([4, 4, 0], 3, 0),
        ([4, 4, 0], 0, 0),
        ([4, 4, 0], 8, 0),
        ([1 << 20, 4, 0], 1, 0),
        ([4, 4, 0], 1, LAYERED),
        ([4, 3, 6], 1, CUDA_ARRAY3D_CUBEMAP),
        ([4, 4, 5], 1, CUDA_ARRAY3D_CUBEMAP),
    ] {
        assert_eq!(t.try_array(&descriptor(size, FLOAT, channels, flags)), Err(IV), "{size:?}, {flags}");
    }
    assert_eq!(t.try_array(&descriptor([4, 4, 0], CUarray_format(7), 1, 0)), Err(IV));
    let raw = descriptor([4, 0, 0], FLOAT, 1, 0);
    let mut array = null_mut();
    unsafe {
        assert_eq!(t.cuArray3DCreate(null_mut(), &raw), IV);
        assert_eq!(t.cuArray3DCreate(&mut array, null()), IV);
    }
}

#[test]
fn a_description_is_returned() {
    let t = textures();
    for raw in [
        descriptor([7, 0, 0], FLOAT, 4, 0),
        descriptor([7, 5, 0], BYTE, 2, CUDA_ARRAY3D_SURFACE_LDST),
        descriptor([7, 5, 3], CUarray_format::CU_AD_FORMAT_HALF, 1, 0),
        descriptor([7, 5, 3], FLOAT, 1, LAYERED),
    ] {
        let array = t.try_array(&raw).unwrap();
        let mut found = CUDA_ARRAY3D_DESCRIPTOR::default();
        let mut flat = CUDA_ARRAY_DESCRIPTOR::default();
        unsafe {
            assert_eq!(t.cuArray3DGetDescriptor(&mut found, array), OK);
            assert_eq!(found, raw);
            assert_eq!(t.cuArrayGetDescriptor(&mut flat, array), OK);
            assert_eq!((flat.Width, flat.Height), (raw.Width, raw.Height));
            assert_eq!(t.cuArray3DGetDescriptor(null_mut(), array), IV);
        }
        t.end_array(array);
    }
}

#[test]
fn null_arrays_are_invalid_handles_or_values() {
    let t = textures();
    let (mut found, mut flat) = (CUDA_ARRAY3D_DESCRIPTOR::default(), CUDA_ARRAY_DESCRIPTOR::default());
    let (mut word, memory, none) = (0_u32, t.words(1), null_mut());
    let array = t.try_array(&descriptor([4, 0, 0], FLOAT, 1, 0)).unwrap();
    unsafe {
        assert_eq!(t.cuArray3DGetDescriptor(&mut found, none), INVALID_HANDLE);
        assert_eq!(t.cuArrayGetDescriptor(&mut flat, none), INVALID_HANDLE);
        assert_eq!(t.cuArray3DGetDescriptor(null_mut(), none), INVALID_HANDLE);
        assert_eq!(t.cuArrayDestroy(none), INVALID_HANDLE);
        assert_eq!(t.cuMemcpyHtoA(none, 0, (&raw const word).cast(), 4), IV);
        assert_eq!(t.cuMemcpyAtoH((&raw mut word).cast(), none, 0, 4), IV);
        assert_eq!(t.cuMemcpyDtoA(none, 0, memory, 4), IV);
        assert_eq!(t.cuMemcpyAtoD(memory, none, 0, 4), IV);
        assert_eq!(t.cuMemcpyAtoA(none, 0, array, 0, 4), IV);
        assert_eq!(t.cuMemcpyAtoA(array, 0, none, 0, 4), IV);
        assert_eq!(t.cuMemcpyHtoAAsync(none, 0, (&raw const word).cast(), 4, t.stream), IV);
        assert_eq!(t.cuMemcpyAtoHAsync((&raw mut word).cast(), none, 0, 4, t.stream), IV);
        // A copy of no bytes looks at no array.
        assert_eq!(t.cuMemcpyHtoA(none, 0, (&raw const word).cast(), 0), OK);
    }
    assert_eq!(t.try_texture(&of_array(none), &nearest()), Err(IV));
    let mut surface = 0;
    assert_eq!(unsafe { t.cuSurfObjectCreate(&mut surface, &of_array(none)) }, IV);
    t.end_array(array);
    t.free(memory);
}

#[test]
fn objects_that_are_not_there_have_no_description_and_end_well() {
    let t = textures();
    let (mut resource, mut raw) = (CUDA_RESOURCE_DESC::default(), CUDA_TEXTURE_DESC::default());
    let mut view = CUDA_RESOURCE_VIEW_DESC::default();
    for none in [0, 12_345] {
        unsafe {
            assert_eq!(t.cuTexObjectGetResourceDesc(&mut resource, none), IV);
            assert_eq!(t.cuTexObjectGetTextureDesc(&mut raw, none), IV);
            assert_eq!(t.cuTexObjectGetResourceViewDesc(&mut view, none), IV);
            assert_eq!(t.cuSurfObjectGetResourceDesc(&mut resource, none), IV);
            assert_eq!((t.cuTexObjectDestroy(none), t.cuSurfObjectDestroy(none)), (OK, OK));
        }
    }
}

#[test]
fn rows_are_copied_between_arrays_host_and_device() {
    let t = textures();
    let raw = descriptor([8, 0, 0], FLOAT, 1, 0);
    let numbers: Vec<f32> = (0..8).map(|i| i as f32).collect();
    let (a, b) = (t.array(&raw, &numbers), t.array(&raw, &[9.0_f32; 8]));
    let memory = t.words(8);
    let mut back = [0.0_f32; 8];
    unsafe {
        assert_eq!(t.cuMemcpyAtoA(b, 8, a, 0, 12), OK);
        assert_eq!(t.content(b, &raw), [9.0, 9.0, 0.0, 1.0, 2.0, 9.0, 9.0, 9.0]);
        assert_eq!(t.cuMemcpyAtoD(memory, b, 4, 16), OK);
        assert_eq!(t.singles(memory, 4), [9.0, 0.0, 1.0, 2.0]);
        assert_eq!(t.cuMemcpyDtoA(a, 16, memory, 8), OK);
        assert_eq!(t.cuMemcpyAtoH(back.as_mut_ptr().cast(), a, 0, 32), OK);
        assert_eq!(back, [0.0, 1.0, 2.0, 3.0, 9.0, 0.0, 6.0, 7.0]);
        assert_eq!(t.cuMemcpyHtoAAsync(a, 0, [5.0_f32; 2].as_ptr().cast(), 8, t.stream), OK);
        assert_eq!(t.cuMemcpyAtoHAsync(back.as_mut_ptr().cast(), a, 0, 12, t.stream), OK);
        t.wait();
        assert_eq!(back[..3], [5.0, 5.0, 2.0]);
        // Beyond the end.
        assert_eq!(t.cuMemcpyHtoA(a, 28, numbers.as_ptr().cast(), 8), IV);
    }
    t.end_array(a);
    t.end_array(b);
    t.free(memory);
}

/// A box of an array to memory of the device.
fn part(array: CUarray, memory: CUdeviceptr) -> CUDA_MEMCPY3D_v2 {
    CUDA_MEMCPY3D_v2 {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        srcArray: array,
        srcXInBytes: 8,
        srcY: 1,
        srcZ: 1,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: memory,
        dstPitch: 8,
        dstHeight: 2,
        WidthInBytes: 8,
        Height: 2,
        Depth: 2,
        ..Default::default()
    }
}

const PART: [f32; 8] = [112.0, 113.0, 122.0, 123.0, 212.0, 213.0, 222.0, 223.0];

fn solid(t: &Textures, flags: u32) -> CUarray {
    let numbers: Vec<f32> = (0..3 * 4 * 5).map(|i| (i / 20 * 100 + i / 5 % 4 * 10 + i % 5) as f32).collect();
    t.array(&descriptor([5, 4, 3], FLOAT, 1, flags), &numbers)
}

#[test]
fn boxes_are_copied_from_solids_and_layers() {
    let t = textures();
    for flags in [0, LAYERED] {
        let (array, memory) = (solid(&t, flags), t.words(8));
        assert_eq!(unsafe { t.cuMemcpy3D(&part(array, memory)) }, OK);
        assert_eq!(t.singles(memory, 8), PART);
        for wrong in [
            CUDA_MEMCPY3D_v2 { srcXInBytes: 16, ..part(array, memory) },
            CUDA_MEMCPY3D_v2 { srcY: 3, ..part(array, memory) },
            CUDA_MEMCPY3D_v2 { srcZ: 2, ..part(array, memory) },
            CUDA_MEMCPY3D_v2 { srcArray: null_mut(), ..part(array, memory) },
        ] {
            assert_eq!(unsafe { t.cuMemcpy3D(&wrong) }, IV);
        }
        t.end_array(array);
        t.free(memory);
    }
}

#[test]
fn nodes_and_captured_copies_have_arrays() {
    let t = textures();
    let (array, memory) = (solid(&t, 0), t.words(16));
    let graph = t.graph();
    let mut node = null_mut();
    let raw = part(array, memory);
    unsafe {
        assert_eq!(t.cuGraphAddMemcpyNode(&mut node, graph, null(), 0, &raw, t.context), OK);
        let mut found = CUDA_MEMCPY3D_v2::default();
        assert_eq!(t.cuGraphMemcpyNodeGetParams(node, &mut found), OK);
        assert_eq!(
            (found.srcMemoryType, found.srcArray, found.srcXInBytes, found.srcY, found.srcZ),
            (CUmemorytype::CU_MEMORYTYPE_ARRAY, array, 8, 1, 1)
        );
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        assert_eq!(t.cuStreamBeginCapture(t.stream, mode), OK);
        let there = part(array, memory + 32);
        assert_eq!(t.cuMemcpy3DAsync(&there, t.stream), OK);
        let mut captured = null_mut();
        assert_eq!(t.cuStreamEndCapture(t.stream, &mut captured), OK);
        for graph in [graph, captured] {
            let exec = t.instantiate(graph);
            t.run(exec);
            t.end(exec);
        }
        t.destroy(&[graph, captured]);
    }
    assert_eq!(t.singles(memory, 16), [PART, PART].as_flattened());
    t.end_array(array);
    t.free(memory);
}

#[test]
fn objects_return_their_descriptions() {
    let t = textures();
    let array = t.array::<f32>(&descriptor([4, 4, 0], FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST), &[]);
    let wanted = CUDA_TEXTURE_DESC { borderColor: [1.0, 2.0, 3.0, 4.0], ..linear(BORDER, true) };
    let (texture, surface) = (t.texture(&of_array(array), &wanted), t.surface(array));
    let mut resource = CUDA_RESOURCE_DESC::default();
    let mut found = CUDA_TEXTURE_DESC::default();
    let mut view = CUDA_RESOURCE_VIEW_DESC::default();
    unsafe {
        assert_eq!(t.cuTexObjectGetResourceDesc(&mut resource, texture), OK);
        assert_eq!(resource.res.array.hArray, array);
        assert_eq!(t.cuTexObjectGetTextureDesc(&mut found, texture), OK);
        assert_eq!(
            (found.addressMode, found.filterMode, found.flags, found.borderColor),
            (wanted.addressMode, wanted.filterMode, wanted.flags, [0.0; 4])
        );
        // Without a view nothing is written.
        assert_eq!(t.cuTexObjectGetResourceViewDesc(&mut view, texture), OK);
        assert_eq!(view, CUDA_RESOURCE_VIEW_DESC::default());
        assert_eq!(t.cuSurfObjectGetResourceDesc(&mut resource, surface), OK);
        assert_eq!(resource.res.array.hArray, array);
    }
    t.end_texture(texture);
    t.end_surface(surface);
    t.end_array(array);
}

#[test]
fn a_view_reads_some_layers_in_another_format() {
    let t = textures();
    let words: Vec<u32> = (0..12_u32).map(|i| (i as f32).to_bits()).collect();
    let format = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32;
    let array = t.array(&descriptor([2, 2, 3], format, 1, LAYERED), &words);
    let view = CUDA_RESOURCE_VIEW_DESC {
        format: CUresourceViewFormat::CU_RES_VIEW_FORMAT_FLOAT_1X32,
        width: 2,
        height: 2,
        depth: 3,
        firstLayer: 1,
        lastLayer: 2,
        ..Default::default()
    };
    let (mut texture, out) = (0, t.words(4));
    let made = unsafe { t.cuTexObjectCreate(&mut texture, &of_array(array), &nearest(), &view) };
    assert_eq!(made, OK);
    t.run_kernel("layer", [2, 2], vec![texture.into(), 0_i32.into(), out.into(), 2_i32.into(), 2_i32.into()]);
    assert_eq!(t.singles(out, 4), [4.0, 5.0, 6.0, 7.0]);
    t.end_texture(texture);
    t.end_array(array);
    t.free(out);
}

#[test]
fn textures_that_cannot_be() {
    let t = textures();
    let array = t.array::<u8>(&descriptor([4, 4, 0], BYTE, 1, 0), &[]);
    let (resource, memory) = (of_array(array), t.words(256));
    let mut reserved = nearest();
    reserved.reserved[0] = 1;
    let mut mode = nearest();
    mode.addressMode[1] = CUaddress_mode_enum(4);
    for wrong in [
        reserved,
        mode,
        CUDA_TEXTURE_DESC { flags: CU_TRSF_SEAMLESS_CUBEMAP, ..nearest() },
        CUDA_TEXTURE_DESC { flags: 0x80, ..nearest() },
        CUDA_TEXTURE_DESC { filterMode: CUfilter_mode_enum(2), ..nearest() },
        CUDA_TEXTURE_DESC { mipmapFilterMode: CUfilter_mode_enum(2), ..nearest() },
    ] {
        assert_eq!(t.try_texture(&resource, &wrong), Err(IV));
    }
    assert_eq!(t.try_texture(&CUDA_RESOURCE_DESC { flags: 1, ..resource }, &nearest()), Err(IV));
    let mipmapped = CUDA_RESOURCE_DESC {
        resType: CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
        ..of_array(null_mut())
    };
    assert_eq!(t.try_texture(&mipmapped, &nearest()), Err(IV));
    assert_eq!(t.try_texture(&of_linear(memory + 4, FLOAT, 64), &nearest()), Err(IV));
    assert_eq!(t.try_texture(&of_linear(0, FLOAT, 64), &nearest()), Err(IV));
    let mut texture = 0;
    unsafe {
        assert_eq!(t.cuTexObjectCreate(null_mut(), &resource, &nearest(), null()), IV);
        assert_eq!(t.cuTexObjectCreate(&mut texture, null(), &nearest(), null()), IV);
        assert_eq!(t.cuTexObjectCreate(&mut texture, &resource, null(), null()), IV);
    }
    t.end_array(array);
    t.free(memory);
}

#[test]
fn textures_that_can_be() {
    let t = textures();
    let array = t.array::<u8>(&descriptor([4, 0, 0], BYTE, 1, 0), &[]);
    let memory = t.words(256);
    let mut mode = nearest();
    // The array has no such dimensions.
    mode.addressMode[1..].copy_from_slice(&[CUaddress_mode_enum(4), CUaddress_mode_enum(99)]);
    let integers = CUDA_TEXTURE_DESC { flags: CU_TRSF_READ_AS_INTEGER, ..linear(CLAMP, false) };
    let unknown = CUDA_TEXTURE_DESC { flags: 0xc, ..nearest() };
    for (resource, raw) in [
        (of_array(array), mode),
        (of_array(array), integers),
        (of_array(array), unknown),
        (of_linear(memory, FLOAT, 0), nearest()),
        (of_linear(memory, FLOAT, 3), nearest()),
    ] {
        t.end_texture(t.texture(&resource, &raw));
    }
    // A view of linear memory has no effect.
    let view = CUDA_RESOURCE_VIEW_DESC { format: CUresourceViewFormat_enum(99), ..Default::default() };
    let mut texture = 0;
    let made = unsafe { t.cuTexObjectCreate(&mut texture, &of_linear(memory, FLOAT, 64), &nearest(), &view) };
    assert_eq!(made, OK);
    t.end_texture(texture);
    t.end_array(array);
    t.free(memory);
}
