//! One source, `basics.cu`, by several compilers of CUDA C++ and several versions of them.

use cuda_handles::{Library, Stream};
use cuda_launch::{Launch, LaunchConfig, params, per, per_2d};

use super::{text, with_library};
use crate::results::reference::{Numbers, assert_close, product, row_softmax, size, wide};

const TRANSLATIONS: [(&str, &str); 7] = [
    ("NVRTC 11.7", text!("basics-nvrtc-11.7")),
    ("NVRTC 11.8", text!("basics-nvrtc-11.8")),
    ("NVRTC 12.4", text!("basics-nvrtc-12.4")),
    ("NVRTC 12.9", text!("basics-nvrtc-12.9")),
    ("NVRTC 13.0", text!("basics-nvrtc-13.0")),
    ("nvcc", text!("basics-nvcc")),
    ("clang", text!("basics-clang")),
];

/// Calls the test with each translation that the driver takes.
fn each(test: impl Fn(&Library, &Stream)) {
    for (name, image) in TRANSLATIONS {
        println!("{name}");
        with_library(image, &test);
    }
}

#[test]
fn every_compiler_scales_and_adds() {
    each(|library, stream| {
        let n = size(300, 100_000);
        let mut numbers = Numbers(1);
        let (x, y) = (numbers.floats(n), numbers.floats(n));
        let (input, out) = (stream.upload(&x).unwrap(), stream.upload(&y).unwrap());
        let kernel = library.kernel("saxpy").unwrap();
        // SAFETY: the arguments are the kernel's, and both buffers have `n` elements.
        unsafe { kernel.launch(stream, per(n, 128), params![n as u32, 0.3_f32, &input, &out]) }.unwrap();
        let expected: Vec<f64> =
            x.iter().zip(&y).map(|(x, y)| f64::from(0.3_f32) * f64::from(*x) + f64::from(*y)).collect();
        // One rounding or two, of numbers below 2.
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1.5e-7);
    });
}

#[test]
fn every_compiler_reduces_over_warps() {
    each(|library, stream| {
        let n = size(1001, 1_000_001);
        let numbers: Vec<i32> = Numbers(2).words(n).into_iter().map(u32::cast_signed).collect();
        let (input, total) = (stream.upload(&numbers).unwrap(), stream.zeros::<i32>(1).unwrap());
        let kernel = library.kernel("sum").unwrap();
        let config = LaunchConfig::new(3, 128);
        // SAFETY: the arguments are the kernel's, and the input has `n` elements.
        unsafe { kernel.launch(stream, config, params![n as u32, &input, &total]) }.unwrap();
        let expected = numbers.iter().fold(0, |sum: i32, number| sum.wrapping_add(*number));
        assert_eq!(total.read_blocking(stream).unwrap(), [expected]);
    });
}

#[test]
fn every_compiler_makes_a_softmax() {
    each(|library, stream| {
        let (rows, columns) = (size(2, 100), size(200, 3000));
        let numbers: Vec<f32> = Numbers(3).floats(rows * columns).iter().map(|x| x * 20.0).collect();
        let (input, out) = (stream.upload(&numbers).unwrap(), stream.zeros::<f32>(rows * columns).unwrap());
        let kernel = library.kernel("softmax").unwrap();
        let config = LaunchConfig::new(rows as u32, 128);
        // SAFETY: the arguments are the kernel's, and both buffers have `columns` elements a row.
        unsafe { kernel.launch(stream, config, params![columns as u32, &input, &out]) }.unwrap();
        let expected: Vec<f64> = wide(&numbers).chunks(columns).flat_map(row_softmax).collect();
        // With fast arithmetic, powers of numbers up to 40 are off by some units.
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1e-5);
    });
}

#[test]
fn every_compiler_multiplies_matrices() {
    each(|library, stream| {
        let n = size(33, 200);
        let mut numbers = Numbers(4);
        let (a, b) = (numbers.floats(n * n), numbers.floats(n * n));
        let (left, right) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let out = stream.zeros::<f32>(n * n).unwrap();
        let kernel = library.kernel("matmul").unwrap();
        let config = per_2d((n, n), (16, 16));
        // SAFETY: the arguments are the kernel's, and the matrices have `n` rows of `n`.
        unsafe { kernel.launch(stream, config, params![n as u32, &left, &right, &out]) }.unwrap();
        let expected = product(n, n, &wide(&a), &wide(&b));
        assert_close(&out.read_blocking(stream).unwrap(), &expected, (n * n) as f64 * 6e-8);
    });
}
