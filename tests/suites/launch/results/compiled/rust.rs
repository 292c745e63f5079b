//! Kernels in Rust: slices with checks that end a kernel, iterators, atomics of `core`.

use cuda_handles::{Image, Stream};
use cuda_launch::{LaunchConfig, kernel, per};

use super::{text, with_library};
use crate::results::reference::{Numbers, assert_close, product, row_softmax, size, wide};

kernel! {
    // SAFETY: the kernels take the lengths of their arrays, and check indices against these.
    unsafe in Image::Ptx(text!("rust"));

    struct Rust;

    fn saxpy(n: u64, a: f32, x: In<f32>, y: InOut<f32>) where x.len() >= n, y.len() >= n;
    fn sum(n: u64, x: In<i32>, total: InOut<i32>) where x.len() >= n, total.len() >= 1;
    fn softmax(columns: u64, x: In<f32>, out: Out<f32>)
    where columns >= 1, x.len() >= columns * grid.x, out.len() >= columns * grid.x,
        grid.y * grid.z == 1, block.x == 32, block.product() == 32;
    fn matmul(n: u64, a: In<f32>, b: In<f32>, c: Out<f32>)
    where n >= 1, a.len() >= n * n, b.len() >= n * n, c.len() >= n * n;
    fn divisors(n: u64, pairs: In<[u64; 2]>, out: Out<u64>) where pairs.len() >= n, out.len() >= n;
}

fn with_rust(test: impl Fn(&Rust, &Stream)) {
    with_library(text!("rust"), |library, stream| {
        // SAFETY: the library is that image.
        test(&unsafe { Rust::of(library) }.unwrap(), stream);
    });
}

#[test]
fn elements_are_scaled_added_and_summed() {
    with_rust(|kernels, stream| {
        let n = size(300, 100_000);
        let mut numbers = Numbers(24);
        let (x, y) = (numbers.floats(n), numbers.floats(n));
        let (input, out) = (stream.upload(&x).unwrap(), stream.upload(&y).unwrap());
        kernels.saxpy.launch(stream, per(n, 64), (n as u64, 0.3, &input, &out)).unwrap();
        let expected: Vec<f64> =
            x.iter().zip(&y).map(|(x, y)| f64::from(0.3_f32) * f64::from(*x) + f64::from(*y)).collect();
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1.5e-7);

        let words: Vec<i32> = numbers.words(n).into_iter().map(u32::cast_signed).collect();
        let (input, total) = (stream.upload(&words).unwrap(), stream.zeros::<i32>(1).unwrap());
        kernels.sum.launch(stream, LaunchConfig::new(2, 64), (n as u64, &input, &total)).unwrap();
        let expected = words.iter().fold(0, |sum: i32, word| sum.wrapping_add(*word));
        assert_eq!(total.read_blocking(stream).unwrap(), [expected]);
    });
}

#[test]
fn rows_have_a_softmax() {
    with_rust(|kernels, stream| {
        let (rows, columns) = (size(3, 300), size(75, 1000));
        let numbers: Vec<f32> = Numbers(25).floats(rows * columns).iter().map(|x| x * 20.0).collect();
        let (input, out) = (stream.upload(&numbers).unwrap(), stream.zeros::<f32>(rows * columns).unwrap());
        let config = LaunchConfig::new(rows as u32, 32);
        kernels.softmax.launch(stream, config, (columns as u64, &input, &out)).unwrap();
        let expected: Vec<f64> = wide(&numbers).chunks(columns).flat_map(row_softmax).collect();
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1e-5);
    });
}

#[test]
fn iterators_multiply_matrices() {
    with_rust(|kernels, stream| {
        let n = size(21, 200);
        let mut numbers = Numbers(26);
        let (a, b) = (numbers.floats(n * n), numbers.floats(n * n));
        let (left, right) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let out = stream.zeros::<f32>(n * n).unwrap();
        kernels.matmul.launch(stream, per(n * n, 64), (n as u64, &left, &right, &out)).unwrap();
        let expected = product(n, n, &wide(&a), &wide(&b));
        assert_close(&out.read_blocking(stream).unwrap(), &expected, (n * n) as f64 * 6e-8);
    });
}

#[test]
fn divisors_of_pairs_are_found() {
    with_rust(|kernels, stream| {
        let n = size(300, 100_000);
        let mut numbers = Numbers(27);
        let mut number = || u64::from(numbers.word()) << 20 | u64::from(numbers.below(1 << 20));
        let pairs: Vec<[u64; 2]> = (0..n).map(|_| [number(), number()]).collect();
        let (input, out) = (stream.upload(&pairs).unwrap(), stream.zeros::<u64>(n).unwrap());
        kernels.divisors.launch(stream, per(n, 64), (n as u64, &input, &out)).unwrap();
        let divisor = |[mut a, mut b]: [u64; 2]| {
            while b != 0 {
                (a, b) = (b, a % b);
            }
            if a == 1 { 1 << 63 } else { a }
        };
        let expected: Vec<u64> = pairs.into_iter().map(divisor).collect();
        assert_eq!(out.read_blocking(stream).unwrap(), expected);
    });
}
