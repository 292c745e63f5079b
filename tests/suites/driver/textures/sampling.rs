//! Reading textures: filters, address modes, formats, layers.

use cuda_sys::*;

use super::*;

/// An image of whole numbers, so that sums of weighted texels are exact.
fn image(width: usize, height: usize) -> Vec<f32> {
    (0..width * height).map(|i| ((i * 37 + i / width * 11) % 64) as f32).collect()
}

/// One axis of the linear filter: the first texel, and the weight of the second one with 8 bits of
/// fraction.
fn axis(x: f64) -> (i64, f64) {
    let fixed = ((x - 0.5) * 256.0 + 0.5).floor() as i64;
    (fixed.div_euclid(256), fixed.rem_euclid(256) as f64 / 256.0)
}

fn clamped(image: &[f32], [width, height]: [i64; 2], x: i64, y: i64) -> f64 {
    let (x, y) = (x.clamp(0, width - 1), y.clamp(0, height - 1));
    image[(y * width + x) as usize].into()
}

#[test]
fn an_image_is_resampled_with_weights_of_eight_bits() {
    let t = textures();
    let (width, height, size) = (16, 12, [16, 12]);
    let pixels = image(width, height);
    let raw = descriptor([width, height, 0], FLOAT, 1, 0);
    let array = t.array(&raw, &pixels);
    let texture = t.texture(&of_array(array), &linear(CLAMP, false));
    let (columns, rows) = (61_i32, 47_i32);
    let out = t.words((columns * rows) as usize);
    // Multiples of 1/256, so that nothing is rounded on the way.
    let (origin, step) = ([-0.75_f32, -0.5], [76.0 / 256.0_f32, 71.0 / 256.0]);
    t.run_kernel(
        "resample",
        [columns as u32, rows as u32],
        vec![texture.into(), out.into(), columns.into(), rows.into(), origin.into(), step.into()],
    );
    let found = t.singles(out, (columns * rows) as usize);
    for (index, found) in found.iter().enumerate() {
        let (column, row) = (index as i32 % columns, index as i32 / columns);
        let x = f64::from(origin[0]) + f64::from(step[0]) * f64::from(column);
        let y = f64::from(origin[1]) + f64::from(step[1]) * f64::from(row);
        let ((i, a), (j, b)) = (axis(x), axis(y));
        let at = |i, j| clamped(&pixels, size, i, j);
        // The product is rounded, and all four weights are 1 together.
        let both = (a * b * 256.0 + 0.5).floor() / 256.0;
        let wanted = (1.0 + both - a - b) * at(i, j)
            + (a - both) * at(i + 1, j)
            + (b - both) * at(i, j + 1)
            + both * at(i + 1, j + 1);
        assert_eq!(f64::from(*found), wanted, "{column}, {row}");
    }
    t.end_texture(texture);
    t.end_array(array);
    t.free(out);
}

/// Reads a row of texels at each coordinate.
fn line(t: &Textures, resource: &CUDA_RESOURCE_DESC, raw: &CUDA_TEXTURE_DESC, at: &[f32]) -> Vec<f32> {
    let texture = t.texture(resource, raw);
    let (from, out) = (t.memory(at), t.words(at.len()));
    let count = at.len() as i32;
    t.run_kernel("line", [count as u32, 1], vec![texture.into(), from.into(), out.into(), count.into()]);
    let found = t.singles(out, at.len());
    t.end_texture(texture);
    t.free(from);
    t.free(out);
    found
}

#[test]
fn coordinates_outside_go_by_the_address_mode() {
    let t = textures();
    let array = t.array(&descriptor([4, 0, 0], FLOAT, 1, 0), &[10.0_f32, 20.0, 30.0, 40.0]);
    let resource = of_array(array);
    let point = |mode, normalised| CUDA_TEXTURE_DESC {
        addressMode: [mode; 3],
        flags: if normalised { CU_TRSF_NORMALIZED_COORDINATES } else { 0 },
        borderColor: [5.0; 4],
        ..Default::default()
    };
    let at = [-4.5, -1.5, -0.5, 0.5, 3.5, 4.5, 5.5, 8.5];
    let normalised = at.map(|x: f32| x / 4.0);
    for (mode, wanted) in [
        (CLAMP, [10.0, 10.0, 10.0, 10.0, 40.0, 40.0, 40.0, 40.0]),
        (BORDER, [5.0, 5.0, 5.0, 10.0, 40.0, 5.0, 5.0, 5.0]),
        (WRAP, [40.0, 30.0, 40.0, 10.0, 40.0, 10.0, 20.0, 10.0]),
        (MIRROR, [40.0, 20.0, 10.0, 10.0, 40.0, 40.0, 30.0, 10.0]),
    ] {
        assert_eq!(line(&t, &resource, &point(mode, true), &normalised), wanted, "{mode:?}, from 0 to 1");
        // Repeated textures need coordinates from 0 to 1, and clamp others.
        let clamped = [10.0, 10.0, 10.0, 10.0, 40.0, 40.0, 40.0, 40.0];
        let wanted = if mode == BORDER { wanted } else { clamped };
        assert_eq!(line(&t, &resource, &point(mode, false), &at), wanted, "{mode:?}");
    }
    t.end_array(array);
}

#[test]
fn linear_filters_at_the_ends_go_by_the_address_mode() {
    let t = textures();
    let array = t.array(&descriptor([4, 0, 0], FLOAT, 1, 0), &[16.0_f32, 32.0, 48.0, 64.0]);
    let resource = of_array(array);
    let at = [0.0, 0.25, 0.5, 1.0, 1.25, 3.75, 4.0];
    let normalised = at.map(|x: f32| x / 4.0);
    for (mode, wanted) in [
        (CLAMP, [16.0, 16.0, 16.0, 24.0, 28.0, 64.0, 64.0]),
        (MIRROR, [16.0, 16.0, 16.0, 24.0, 28.0, 64.0, 64.0]),
        (WRAP, [40.0, 28.0, 16.0, 24.0, 28.0, 52.0, 40.0]),
        // A row is an image, whose upper edge is sampled: half of everything is the border.
        (BORDER, [10.0, 11.0, 12.0, 16.0, 18.0, 29.0, 22.0]),
    ] {
        let raw = CUDA_TEXTURE_DESC { borderColor: [8.0; 4], ..linear(mode, true) };
        assert_eq!(line(&t, &resource, &raw, &normalised), wanted, "{mode:?}");
    }
    for (modes, wanted) in [
        ([BORDER, CLAMP, CLAMP], [12.0, 14.0, 16.0, 24.0, 28.0, 50.0, 36.0]),
        ([CLAMP, BORDER, CLAMP], [12.0, 12.0, 12.0, 16.0, 18.0, 36.0, 36.0]),
    ] {
        let raw = CUDA_TEXTURE_DESC { addressMode: modes, borderColor: [8.0; 4], ..linear(CLAMP, false) };
        assert_eq!(line(&t, &resource, &raw, &at), wanted, "{modes:?}");
    }
    t.end_array(array);
}

#[test]
fn sums_have_the_precision_of_the_format() {
    let t = textures();
    // The weights of the second texel are 1/256 times these.
    let at = [0.0, 40.0, 120.0, 256.0].map(|weight: f32| 0.5 + weight / 256.0);
    let sums = |format, texels: [u16; 2], flags| {
        let array = t.array(&descriptor([2, 0, 0], format, 1, 0), &texels);
        let raw = CUDA_TEXTURE_DESC { flags, ..linear(CLAMP, false) };
        let found = line(&t, &of_array(array), &raw, &at);
        t.end_array(array);
        found
    };
    // 16 bits of the sum remain.
    let parts = |numbers: [u16; 4]| numbers.map(|number| f32::from(number) / 65535.0);
    let format = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16;
    assert_eq!(sums(format, [0x2e66, 0x3555], 0), parts([11878, 12155, 12710, 13653]));
    let bits = |numbers: [u32; 4]| numbers.map(f32::from_bits);
    assert_eq!(sums(format, [5, 0x3a], CU_TRSF_READ_AS_INTEGER), bits([5, 13, 30, 0x3a]));
    // 8192 and -7.7: halves.
    let half = CUarray_format::CU_AD_FORMAT_HALF;
    assert_eq!(sums(half, [0x7000, 0xc7b3], 0), [8192.0, 6912.0, 4348.0, -7.699_218_8]);
    let array = t.array(&descriptor([2, 0, 0], BYTE, 1, 0), &[7_u8, 255]);
    let found = line(&t, &of_array(array), &linear(CLAMP, false), &at);
    assert_eq!(found, parts([1799, 11758, 31675, 65535]));
    t.end_array(array);
}

#[test]
fn borders_have_the_format_of_the_texels() {
    let t = textures();
    let border = |format, flags| {
        let array = t.array::<u8>(&descriptor([2, 0, 0], format, 1, 0), &[]);
        let raw = CUDA_TEXTURE_DESC {
            addressMode: [BORDER; 3],
            flags,
            borderColor: [0.25; 4],
            ..Default::default()
        };
        let found = line(&t, &of_array(array), &raw, &[-1.0]);
        t.end_array(array);
        found[0]
    };
    assert_eq!(border(FLOAT, 0), 0.25);
    assert_eq!(border(CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32, 0), 0.25);
    assert_eq!(border(BYTE, 0), 64.0 / 255.0);
    assert_eq!(border(CUarray_format::CU_AD_FORMAT_SIGNED_INT8, 0), 32.0 / 127.0);
    assert_eq!(border(BYTE, CU_TRSF_READ_AS_INTEGER), 0.0);
}

#[test]
fn channels_that_a_format_lacks_are_zero() {
    let t = textures();
    let array = t.array(&descriptor([2, 1, 0], FLOAT, 1, 0), &[3.0_f32, 4.0]);
    let (texture, out) = (t.texture(&of_array(array), &nearest()), t.words(8));
    t.run_kernel("colours", [2, 1], vec![texture.into(), out.into(), 2_i32.into(), 1_i32.into()]);
    assert_eq!(t.singles(out, 8), [3.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0]);
    t.end_texture(texture);
    t.end_array(array);
    t.free(out);
}

#[test]
fn halves_and_integers_are_read_as_numbers() {
    let t = textures();
    let halves = [0x3c00_u16, 0xc000, 0x3800, 0x7bff];
    let array = t.array(&descriptor([4, 0, 0], CUarray_format::CU_AD_FORMAT_HALF, 1, 0), &halves);
    let at = [0.5, 1.5, 2.5, 3.5];
    assert_eq!(line(&t, &of_array(array), &nearest(), &at), [1.0, -2.0, 0.5, 65504.0]);
    t.end_array(array);
    let format = CUarray_format::CU_AD_FORMAT_SIGNED_INT16;
    let array = t.array(&descriptor([4, 0, 0], format, 1, 0), &[0_i16, 32767, -32767, -32768]);
    assert_eq!(line(&t, &of_array(array), &nearest(), &at), [0.0, 1.0, -1.0, -1.0]);
    t.end_array(array);
    let bytes: [u8; 4] = [0, 255, 128, 51];
    let array = t.array(&descriptor([4, 0, 0], BYTE, 1, 0), &bytes);
    let found = line(&t, &of_array(array), &nearest(), &at);
    for (found, byte) in found.iter().zip(bytes) {
        assert!((found - f32::from(byte) / 255.0).abs() < 1e-7, "{byte}: {found}");
    }
    t.end_array(array);
}

#[test]
fn linear_memory_is_read_by_index_and_is_zero_outside() {
    let t = textures();
    let memory = t.words(256);
    let words: Vec<i32> = (0..256).map(|i| 1000 - 7 * i).collect();
    assert_eq!(unsafe { t.cuMemcpyHtoD(memory, words.as_ptr().cast(), 1024) }, OK);
    let format = CUarray_format::CU_AD_FORMAT_SIGNED_INT32;
    let raw = CUDA_TEXTURE_DESC { flags: CU_TRSF_READ_AS_INTEGER, ..nearest() };
    let texture = t.texture(&of_linear(memory, format, 400), &raw);
    let at: [i32; 6] = [0, 1, 99, 100, 255, -1];
    let (from, out) = (t.words(6), t.words(6));
    assert_eq!(unsafe { t.cuMemcpyHtoD(from, at.as_ptr().cast(), 24) }, OK);
    t.run_kernel("fetch", [6, 1], vec![texture.into(), from.into(), out.into(), 6_i32.into()]);
    let found = crate::calls::read(&t, out, 6).into_iter().map(|word| word as i32).collect::<Vec<_>>();
    assert_eq!(found, [1000, 993, 307, 0, 0, 0]);
    t.end_texture(texture);
    for address in [memory, from, out] {
        t.free(address);
    }
}

#[test]
fn pitched_memory_is_an_image() {
    let t = textures();
    let (width, height) = (5_usize, 3_usize);
    let (mut memory, mut pitch) = (0, 0);
    assert_eq!(unsafe { t.cuMemAllocPitch(&mut memory, &mut pitch, width * 4, height, 4) }, OK);
    let pixels = image(width, height);
    for (row, pixels) in pixels.chunks(width).enumerate() {
        let to = memory + (row * pitch) as u64;
        assert_eq!(unsafe { t.cuMemcpyHtoD(to, pixels.as_ptr().cast(), width * 4) }, OK);
    }
    let mut raw =
        CUDA_RESOURCE_DESC { resType: CUresourcetype::CU_RESOURCE_TYPE_PITCH2D, ..Default::default() };
    raw.res.pitch2D = CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_4 {
        devPtr: memory,
        format: FLOAT,
        numChannels: 1,
        width,
        height,
        pitchInBytes: pitch,
    };
    let texture = t.texture(&raw, &nearest());
    let out = t.words(width * height);
    let (columns, rows) = (width as i32, height as i32);
    t.run_kernel(
        "resample",
        [5, 3],
        vec![texture.into(), out.into(), columns.into(), rows.into(), [0.5, 0.5].into(), [1.0, 1.0].into()],
    );
    assert_eq!(t.singles(out, width * height), pixels);
    t.end_texture(texture);
    t.free(out);
    t.free(memory);
}

#[test]
fn colours_are_bytes_or_numbers() {
    let t = textures();
    let (width, height) = (4_i32, 2_i32);
    let pixels: Vec<u8> = (0..32).map(|i| (i * 8 + i % 3) as u8).collect();
    let array = t.array(&descriptor([4, 2, 0], BYTE, 4, 0), &pixels);
    let out = t.words(32);
    let texture = t.texture(&of_array(array), &nearest());
    t.run_kernel("colours", [4, 2], vec![texture.into(), out.into(), width.into(), height.into()]);
    for (found, byte) in t.singles(out, 32).into_iter().zip(&pixels) {
        assert!((found - f32::from(*byte) / 255.0).abs() < 1e-7, "{byte}: {found}");
    }
    t.end_texture(texture);
    let raw = CUDA_TEXTURE_DESC { flags: CU_TRSF_READ_AS_INTEGER, ..nearest() };
    let texture = t.texture(&of_array(array), &raw);
    t.run_kernel("bytes", [4, 2], vec![texture.into(), out.into(), width.into(), height.into()]);
    let found: Vec<u8> = crate::calls::read(&t, out, 8).into_iter().flat_map(u32::to_le_bytes).collect();
    assert_eq!(found, pixels);
    t.end_texture(texture);
    t.end_array(array);
    t.free(out);
}

#[test]
fn a_table_of_three_dimensions_is_interpolated() {
    let t = textures();
    let table: Vec<f32> = (0..4 * 3 * 5)
        .map(|i| {
            let (x, y, z) = (i % 4, i / 4 % 3, i / 12);
            (x * 16 + y * 64 + z * 256) as f32
        })
        .collect();
    let array = t.array(&descriptor([4, 3, 5], FLOAT, 1, 0), &table);
    let texture = t.texture(&of_array(array), &linear(CLAMP, false));
    let points: Vec<[f32; 4]> = vec![
        [0.5, 0.5, 0.5, 0.0],
        [3.5, 2.5, 4.5, 0.0],
        [1.0, 1.0, 1.0, 0.0],
        [2.25, 1.75, 3.0, 0.0],
        [-7.0, 1.5, 9.0, 0.0],
    ];
    let (from, out) = (t.memory(points.as_flattened()), t.words(points.len()));
    let count = points.len() as i32;
    t.run_kernel("look_up", [count as u32, 1], vec![texture.into(), from.into(), out.into(), count.into()]);
    // The table is linear, and so is the filter.
    let wanted = points.iter().map(|[x, y, z, _]| {
        (x.clamp(0.5, 3.5) - 0.5) * 16.0
            + (y.clamp(0.5, 2.5) - 0.5) * 64.0
            + (z.clamp(0.5, 4.5) - 0.5) * 256.0
    });
    assert_eq!(t.singles(out, points.len()), wanted.collect::<Vec<f32>>());
    t.end_texture(texture);
    t.end_array(array);
    t.free(from);
    t.free(out);
}

#[test]
fn layers_are_images_of_their_own_and_clamp() {
    let t = textures();
    let pixels: Vec<f32> = (0..3 * 2 * 3).map(|i| i as f32).collect();
    let array = t.array(&descriptor([3, 2, 3], FLOAT, 1, CUDA_ARRAY3D_LAYERED), &pixels);
    let texture = t.texture(&of_array(array), &nearest());
    let out = t.words(6);
    for (number, layer) in [(0_i32, 0), (1, 1), (2, 2), (7, 2)] {
        let arguments = vec![texture.into(), number.into(), out.into(), 3_i32.into(), 2_i32.into()];
        t.run_kernel("layer", [3, 2], arguments);
        assert_eq!(t.singles(out, 6), pixels[6 * layer..][..6], "layer {number}");
    }
    t.end_texture(texture);
    t.end_array(array);
    t.free(out);
}

#[test]
fn four_texels_are_gathered_counter_clockwise() {
    let t = textures();
    let pixels: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let raw = descriptor([4, 4, 0], FLOAT, 1, CUDA_ARRAY3D_TEXTURE_GATHER);
    let array = t.array(&raw, &pixels);
    let texture = t.texture(&of_array(array), &nearest());
    let out = t.words(4);
    for (at, wanted) in [
        ([1.75_f32, 1.25_f32], [5.0, 6.0, 2.0, 1.0]),
        ([1.25, 2.75], [12.0, 13.0, 9.0, 8.0]),
        ([0.25, 0.25], [0.0, 0.0, 0.0, 0.0]),
    ] {
        t.run_kernel("gather", [1, 1], vec![texture.into(), at[0].into(), at[1].into(), out.into()]);
        assert_eq!(t.singles(out, 4), wanted, "{at:?}");
    }
    t.end_texture(texture);
    t.end_array(array);
    t.free(out);
}

#[test]
fn directions_lead_to_faces_of_a_cube() {
    let t = textures();
    let pixels: Vec<f32> = (0..6 * 4).map(|i| (i / 4 * 10 + i % 4) as f32).collect();
    let array = t.array(&descriptor([2, 2, 6], FLOAT, 1, CUDA_ARRAY3D_CUBEMAP), &pixels);
    let texture = t.texture(&of_array(array), &CUDA_TEXTURE_DESC { flags: 2, ..nearest() });
    // Per axis: the face ahead, at its first texel and its last.
    let points: Vec<[f32; 4]> = vec![
        [1.0, 0.5, 0.5, 0.0],
        [1.0, -0.5, -0.5, 0.0],
        [-1.0, 0.5, -0.5, 0.0],
        [-1.0, -0.5, 0.5, 0.0],
        [-0.5, 1.0, -0.5, 0.0],
        [0.5, -1.0, -0.5, 0.0],
        [-0.5, 0.5, 1.0, 0.0],
        [0.5, 0.5, -1.0, 0.0],
    ];
    let (from, out) = (t.memory(points.as_flattened()), t.words(points.len()));
    let count = points.len() as i32;
    t.run_kernel(
        "directions",
        [count as u32, 1],
        vec![texture.into(), from.into(), out.into(), count.into()],
    );
    assert_eq!(t.singles(out, points.len()), [0.0, 3.0, 10.0, 13.0, 20.0, 33.0, 40.0, 50.0]);
    t.end_texture(texture);
    t.end_array(array);
    t.free(from);
    t.free(out);
}
