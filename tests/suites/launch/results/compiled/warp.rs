//! The PTX of Warp, whose kernels take their arrays and the extents of the launch as structures.

use cuda_handles::{Buffer, Element, Image, Stream};
use cuda_launch::{LaunchConfig, kernel, per};

use super::{text, with_library};
use crate::results::reference::{Numbers, assert_close, product, row_softmax, size, wide};

/// `launch_bounds_t` in Warp's `builtin.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Bounds {
    shape: [i32; 4],
    dimensions: i32,
    size: u64,
}

/// `array_t` in Warp's `array.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Array {
    data: u64,
    gradient: u64,
    shape: [i32; 4],
    strides: [i32; 4],
    dimensions: i32,
}

/// The extents of a launch, with as many dimensions as numbers.
fn bounds(extents: &[usize]) -> Bounds {
    let mut shape = [0; 4];
    shape.iter_mut().zip(extents).for_each(|(extent, found)| *extent = *found as i32);
    Bounds { shape, dimensions: extents.len() as i32, size: extents.iter().product::<usize>() as u64 }
}

/// A list.
fn list<T: Element>(buffer: &Buffer<T>) -> Array {
    let stride = size_of::<T>() as i32;
    Array {
        data: buffer.address(),
        gradient: 0,
        shape: [buffer.len() as i32, 0, 0, 0],
        strides: [stride, 0, 0, 0],
        dimensions: 1,
    }
}

/// A table with rows of that length.
fn table<T: Element>(buffer: &Buffer<T>, width: usize) -> Array {
    let stride = size_of::<T>() as i32;
    Array {
        data: buffer.address(),
        gradient: 0,
        shape: [(buffer.len() / width) as i32, width as i32, 0, 0],
        strides: [width as i32 * stride, stride, 0, 0],
        dimensions: 2,
    }
}

kernel! {
    // SAFETY: the structures have the fields of Warp's headers, and kernels keep within the arrays'
    // lengths and the extents of the launch; the rest is for the launches.
    unsafe in Image::Ptx(text!("warp"));

    /// # Safety
    /// For all kernels: arrays are memory on the launch's stream, as long as its extents, which
    /// lives until it has ended.
    struct Warp;

    unsafe fn saxpy(bounds: Struct<Bounds>, a: f32, x: Struct<Array>, y: Struct<Array>)
    named "saxpy_cuda_kernel_forward";
    unsafe fn total(bounds: Struct<Bounds>, x: Struct<Array>, sum: Struct<Array>)
    named "total_cuda_kernel_forward";
    unsafe fn softmax(bounds: Struct<Bounds>, x: Struct<Array>, out: Struct<Array>)
    named "softmax_cuda_kernel_forward";
    unsafe fn rotate(
        bounds: Struct<Bounds>, turn: Struct<[f32; 4]>, by: Struct<[[f32; 3]; 3]>, points: Struct<Array>,
        out: Struct<Array>
    ) named "rotate_cuda_kernel_forward";
    unsafe fn matmul(bounds: Struct<Bounds>, a: Struct<Array>, b: Struct<Array>, c: Struct<Array>)
    named "matmul_cuda_kernel_forward";
    unsafe fn noise(bounds: Struct<Bounds>, seed: i32, out: Struct<Array>)
    named "noise_cuda_kernel_forward";
}

/// Calls the test where the driver and its first device take the kernels.
fn with_warp(test: impl Fn(&Warp, &Stream)) {
    with_library(text!("warp"), |library, stream| {
        // SAFETY: the library is that image.
        test(&unsafe { Warp::of(library) }.unwrap(), stream);
    });
}

#[test]
fn arrays_are_scaled_and_added() {
    with_warp(|kernels, stream| {
        let n = size(300, 100_000);
        let mut numbers = Numbers(18);
        let (x, y) = (numbers.floats(n), numbers.floats(n));
        let (input, out) = (stream.upload(&x).unwrap(), stream.upload(&y).unwrap());
        let arguments = (bounds(&[n]), 0.3_f32, list(&input), list(&out));
        // SAFETY: the arrays are as long as the launch, on its stream, and read before they go.
        unsafe { kernels.saxpy.launch(stream, per(n, 256), arguments) }.unwrap();
        let expected: Vec<f64> =
            x.iter().zip(&y).map(|(x, y)| f64::from(0.3_f32) * f64::from(*x) + f64::from(*y)).collect();
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1.5e-7);
    });
}

#[test]
fn atomics_add_up() {
    with_warp(|kernels, stream| {
        let n = size(300, 100_000);
        let numbers: Vec<i32> = Numbers(19).words(n).into_iter().map(u32::cast_signed).collect();
        let (input, total) = (stream.upload(&numbers).unwrap(), stream.zeros::<i32>(1).unwrap());
        let arguments = (bounds(&[n]), list(&input), list(&total));
        // SAFETY: the arrays are as long as the launch, on its stream, and read before they go.
        unsafe { kernels.total.launch(stream, per(n, 256), arguments) }.unwrap();
        let expected = numbers.iter().fold(0, |sum: i32, number| sum.wrapping_add(*number));
        assert_eq!(total.read_blocking(stream).unwrap(), [expected]);
    });
}

#[test]
fn each_thread_makes_a_row_s_softmax() {
    with_warp(|kernels, stream| {
        let (rows, columns) = (size(10, 1000), size(30, 500));
        let numbers: Vec<f32> = Numbers(20).floats(rows * columns).iter().map(|x| x * 20.0).collect();
        let (input, out) = (stream.upload(&numbers).unwrap(), stream.zeros::<f32>(rows * columns).unwrap());
        let arguments = (bounds(&[rows]), table(&input, columns), table(&out, columns));
        // SAFETY: the arrays are as long as the launch, on its stream, and read before they go.
        unsafe { kernels.softmax.launch(stream, per(rows, 256), arguments) }.unwrap();
        let expected: Vec<f64> = wide(&numbers).chunks(columns).flat_map(row_softmax).collect();
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1e-5);
    });
}

#[test]
fn vectors_are_turned() {
    with_warp(|kernels, stream| {
        let n = size(100, 100_000);
        let points: Vec<[f32; 3]> = Numbers(21).floats(3 * n).as_chunks().0.to_vec();
        let (input, out) = (stream.upload(&points).unwrap(), stream.zeros::<[f32; 3]>(n).unwrap());
        // A quarter turn around z; then x and z are exchanged, and z is doubled.
        let quarter = [0.0, 0.0, 0.5_f32.sqrt(), 0.5_f32.sqrt()];
        let by = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [2.0_f32, 0.0, 0.0]];
        let arguments = (bounds(&[n]), quarter, by, list(&input), list(&out));
        // SAFETY: the arrays are as long as the launch, on its stream, and read before they go.
        unsafe { kernels.rotate.launch(stream, per(n, 256), arguments) }.unwrap();
        let expected: Vec<f64> =
            points.iter().flat_map(|[x, y, z]| [*z, *x, -2.0 * y].map(f64::from)).collect();
        assert_close(out.read_blocking(stream).unwrap().as_flattened(), &expected, 1e-6);
    });
}

#[test]
fn tiles_are_multiplied() {
    with_warp(|kernels, stream| {
        let (m, n, k) = (size(32, 320), size(16, 160), size(48, 480));
        let mut numbers = Numbers(22);
        let (a, b) = (numbers.floats(m * k), numbers.floats(k * n));
        let (left, right) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let out = stream.zeros::<f32>(m * n).unwrap();
        // One block of 256 threads for each tile; they are the last dimension of the launch.
        let extents = [m / 16, n / 16, 256];
        let config = LaunchConfig::new((m / 16 * (n / 16)) as u32, 256).shared_bytes(3072);
        let arguments = (bounds(&extents), table(&left, k), table(&right, n), table(&out, n));
        // SAFETY: the arrays are as long as the launch, on its stream, and read before they go.
        unsafe { kernels.matmul.launch(stream, config, arguments) }.unwrap();
        let expected = product(n, k, &wide(&a), &wide(&b));
        assert_close(&out.read_blocking(stream).unwrap(), &expected, (k * k) as f64 * 6e-8);
    });
}

/// The generator in Warp's `rand.h`.
fn pcg(state: u32) -> u32 {
    let next = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((next >> ((next >> 28) + 4)) ^ next).wrapping_mul(277_803_737);
    word >> 22 ^ word
}

#[test]
fn random_numbers_are_those_of_its_generator() {
    with_warp(|kernels, stream| {
        let (n, seed) = (size(300, 100_000), 42_i32);
        let out = stream.zeros::<f32>(n).unwrap();
        let arguments = (bounds(&[n]), seed, list(&out));
        // SAFETY: the arrays are as long as the launch, on its stream, and read before they go.
        unsafe { kernels.noise.launch(stream, per(n, 256), arguments) }.unwrap();
        let normal = |i: u32| {
            let mut state = pcg((seed as u32).wrapping_add(pcg(i)));
            let mut uniform = || {
                state = pcg(state);
                f64::from((state >> 8) as f32 / 16_777_216.0)
            };
            let (first, second) = (uniform(), uniform());
            (-2.0 * (first + 5.96e-8).ln()).sqrt() * (std::f64::consts::TAU * second).cos()
        };
        let expected: Vec<f64> = (0..n as u32).map(|i| normal(i) + f64::from(i).sin()).collect();
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1e-4);
    });
}
