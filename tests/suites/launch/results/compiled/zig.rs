//! Kernels in Zig.

use cuda_handles::{Image, Stream};
use cuda_launch::{kernel, per};

use super::{text, with_library};
use crate::results::reference::{Numbers, assert_close, product, row_softmax, size, wide};

kernel! {
    // SAFETY: the kernels check their places against the sizes; with `n` a multiple of four, four
    // elements of a product are in one row.
    unsafe in Image::Ptx(text!("zig"));

    struct Zig;

    fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>) where x.len() >= n, y.len() >= n;
    fn sum(n: u32, x: In<i32>, total: InOut<i32>)
    where x.len() >= n, total.len() >= 1, 4 * grid.x * block.x < 1 << 31;
    fn softmax(rows: u32, columns: u32, x: In<f32>, out: Out<f32>)
    where columns >= 1, rows * columns < 1 << 31, x.len() >= columns * rows,
        out.len() >= columns * rows;
    fn matmul(n: u32, a: In<f32>, b: In<f32>, c: Out<f32>)
    where n >= 1, n % 4 == 0, n < 1 << 15, a.len() >= n * n, b.len() >= n * n, c.len() >= n * n,
        4 * grid.x * block.x < 1 << 31;
}

fn with_zig(test: impl Fn(&Zig, &Stream)) {
    with_library(text!("zig"), |library, stream| {
        // SAFETY: the library is that image.
        test(&unsafe { Zig::of(library) }.unwrap(), stream);
    });
}

#[test]
fn elements_are_scaled_added_and_summed() {
    with_zig(|kernels, stream| {
        let n = size(301, 100_001);
        let mut numbers = Numbers(28);
        let (x, y) = (numbers.floats(n), numbers.floats(n));
        let (input, out) = (stream.upload(&x).unwrap(), stream.upload(&y).unwrap());
        kernels.saxpy.launch(stream, per(n, 64), (n as u32, 0.3, &input, &out)).unwrap();
        let expected: Vec<f64> =
            x.iter().zip(&y).map(|(x, y)| f64::from(0.3_f32) * f64::from(*x) + f64::from(*y)).collect();
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1.5e-7);

        let words: Vec<i32> = numbers.words(n).into_iter().map(u32::cast_signed).collect();
        let (input, total) = (stream.upload(&words).unwrap(), stream.zeros::<i32>(1).unwrap());
        kernels.sum.launch(stream, per(n.div_ceil(4), 64), (n as u32, &input, &total)).unwrap();
        let expected = words.iter().fold(0, |sum: i32, word| sum.wrapping_add(*word));
        assert_eq!(total.read_blocking(stream).unwrap(), [expected]);
    });
}

#[test]
fn rows_have_a_softmax() {
    with_zig(|kernels, stream| {
        let (rows, columns) = (size(40, 1000), size(30, 500));
        let numbers: Vec<f32> = Numbers(29).floats(rows * columns).iter().map(|x| x * 20.0).collect();
        let (input, out) = (stream.upload(&numbers).unwrap(), stream.zeros::<f32>(rows * columns).unwrap());
        let arguments = (rows as u32, columns as u32, &input, &out);
        kernels.softmax.launch(stream, per(rows, 64), arguments).unwrap();
        let expected: Vec<f64> = wide(&numbers).chunks(columns).flat_map(row_softmax).collect();
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1e-5);
    });
}

#[test]
fn vectors_multiply_matrices() {
    with_zig(|kernels, stream| {
        let n = size(20, 200);
        let mut numbers = Numbers(30);
        let (a, b) = (numbers.floats(n * n), numbers.floats(n * n));
        let (left, right) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let out = stream.zeros::<f32>(n * n).unwrap();
        kernels.matmul.launch(stream, per(n * n / 4, 64), (n as u32, &left, &right, &out)).unwrap();
        let expected = product(n, n, &wide(&a), &wide(&b));
        assert_close(&out.read_blocking(stream).unwrap(), &expected, (n * n) as f64 * 6e-8);
    });
}
