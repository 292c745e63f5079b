//! Reading and writing surfaces.

use std::ptr::{null, null_mut};

use cuda_sys::*;

use super::*;

#[test]
fn a_box_filter_writes_another_array() {
    let t = textures();
    let (width, height) = (9_i32, 7_i32);
    let pixels: Vec<f32> = (0..63).map(|i| ((i * 29) % 64) as f32 * 9.0).collect();
    let raw = descriptor([9, 7, 0], FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST);
    let (from, to) = (t.array(&raw, &pixels), t.array::<f32>(&raw, &[]));
    let (source, target) = (t.surface(from), t.surface(to));
    t.run_kernel("box_filter", [9, 7], vec![source.into(), target.into(), width.into(), height.into()]);
    let found = t.content(to, &raw);
    for y in 0..height {
        for x in 0..width {
            let mut sum = 0.0;
            for (i, j) in (-1..=1).flat_map(|j| (-1..=1).map(move |i| (i, j))) {
                let (x, y) = ((x + i).clamp(0, width - 1), (y + j).clamp(0, height - 1));
                sum += pixels[(y * width + x) as usize];
            }
            assert_eq!(found[(y * width + x) as usize], sum / 9.0, "{x}, {y}");
        }
    }
    t.end_surface(source);
    t.end_surface(target);
    t.end_array(from);
    t.end_array(to);
}

#[test]
fn one_layer_is_written() {
    let t = textures();
    let raw = descriptor([4, 2, 3], FLOAT, 1, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST);
    let array = t.array(&raw, &[-1.0_f32; 24]);
    let surface = t.surface(array);
    t.run_kernel("fill_layer", [4, 2], vec![surface.into(), 1_i32.into(), 4_i32.into(), 2_i32.into()]);
    let mut wanted = vec![-1.0; 24];
    wanted[8..16].copy_from_slice(&[100.0, 101.0, 102.0, 103.0, 110.0, 111.0, 112.0, 113.0]);
    assert_eq!(t.content(array, &raw), wanted);
    t.end_surface(surface);
    t.end_array(array);
}

/// [`CUDA_ARRAY3D_SURFACE_LDST`] is not asked for.
#[test]
fn surfaces_need_an_array() {
    let t = textures();
    let raw = descriptor([4, 2, 1], FLOAT, 1, CUDA_ARRAY3D_LAYERED);
    let array = t.array(&raw, &[-1.0_f32; 8]);
    let memory = t.words(4);
    let mut surface = 0;
    unsafe {
        assert_eq!(t.cuSurfObjectCreate(&mut surface, &of_linear(memory, FLOAT, 16)), IV);
        assert_eq!(t.cuSurfObjectCreate(&mut surface, null()), IV);
        if cuda_tests::is_soft() {
            // A GPU's driver crashes.
            assert_eq!(t.cuSurfObjectCreate(null_mut(), &of_array(array)), IV);
        }
        assert_eq!(t.cuSurfObjectCreate(&mut surface, &of_array(array)), OK);
    }
    t.run_kernel("fill_layer", [4, 2], vec![surface.into(), 0_i32.into(), 4_i32.into(), 2_i32.into()]);
    assert_eq!(t.content(array, &raw), [0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0]);
    t.end_surface(surface);
    t.end_array(array);
    t.free(memory);
}
