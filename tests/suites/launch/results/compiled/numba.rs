//! Numba's optimised PTX. An array of its kernels is seven arguments, or nine with two dimensions:
//! two addresses that no kernel uses, the number and size of elements, the address, and for each
//! dimension its length and its stride in bytes.

use cuda_handles::{Buffer, Element, Kernel, Stream};
use cuda_launch::{Launch, LaunchConfig, params, per, per_2d};

use super::{text, with_library};
use crate::results::reference::{Numbers, assert_close, product, row_softmax, size, wide};

/// The arguments of one-dimensional arrays, behind those in front.
macro_rules! lists {
    ([$($front:expr),*] $($list:expr),+) => {
        params![
            $($front,)*
            $(0_u64, 0_u64, $list.len() as i64, bytes(&$list), &$list, $list.len() as i64, bytes(&$list)),+
        ]
    };
}

/// The arguments of two-dimensional arrays with rows of that length.
macro_rules! tables {
    ($(($table:expr, $width:expr)),+) => {
        params![$(
            0_u64,
            0_u64,
            $table.len() as i64,
            bytes(&$table),
            &$table,
            ($table.len() / $width) as i64,
            $width as i64,
            $width as i64 * bytes(&$table),
            bytes(&$table)
        ),+]
    };
}

/// Calls the test with a kernel.
macro_rules! with_numba {
    ($name:literal, $test:expr) => {
        let test: fn(&Kernel, &Stream) = $test;
        with_library(text!("numba-", $name), |library, stream| test(&library.kernel($name).unwrap(), stream));
    };
}

/// The size of an element.
fn bytes<T: Element>(_: &Buffer<T>) -> i64 {
    size_of::<T>() as i64
}

#[test]
fn arrays_are_scaled_and_added() {
    with_numba!("saxpy", |kernel, stream| {
        let n = size(300, 100_000);
        let mut numbers = Numbers(13);
        let (x, y) = (numbers.floats(n), numbers.floats(n));
        let (input, out) = (stream.upload(&x).unwrap(), stream.upload(&y).unwrap());
        // SAFETY: the arguments are the kernel's, with the arrays' sizes.
        unsafe { kernel.launch(stream, per(n, 64), lists!([0.3_f32] input, out)) }.unwrap();
        let expected: Vec<f64> =
            x.iter().zip(&y).map(|(x, y)| f64::from(0.3_f32) * f64::from(*x) + f64::from(*y)).collect();
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1.5e-7);
    });
}

#[test]
fn doubles_are_reduced() {
    with_numba!("reduction", |kernel, stream| {
        let numbers: Vec<f64> =
            Numbers(14).floats(size(1000, 1_000_000)).iter().copied().map(f64::from).collect();
        let (input, total) = (stream.upload(&numbers).unwrap(), stream.zeros::<f64>(1).unwrap());
        // SAFETY: as above; the blocks have the threads that the kernel is for.
        unsafe { kernel.launch(stream, LaunchConfig::new(3, 128), lists!([] input, total)) }.unwrap();
        // Sums of multiples of 2^-23 are exact.
        assert_eq!(total.read_blocking(stream).unwrap(), [numbers.iter().sum::<f64>()]);
    });
}

#[test]
fn rows_have_a_softmax() {
    with_numba!("softmax", |kernel, stream| {
        let (rows, columns) = (size(3, 300), size(75, 1000));
        let numbers: Vec<f32> = Numbers(15).floats(rows * columns).iter().map(|x| x * 20.0).collect();
        let (input, out) = (stream.upload(&numbers).unwrap(), stream.zeros::<f32>(rows * columns).unwrap());
        let arguments = tables!((input, columns), (out, columns));
        // SAFETY: as above; there is a block of one warp for each row.
        unsafe { kernel.launch(stream, LaunchConfig::new(rows as u32, 32), arguments) }.unwrap();
        let expected: Vec<f64> = wide(&numbers).chunks(columns).flat_map(row_softmax).collect();
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1e-6);
    });
}

#[test]
fn matrices_are_multiplied() {
    with_numba!("matmul", |kernel, stream| {
        let (m, n, k) = (size(24, 400), size(32, 320), size(40, 240));
        let mut numbers = Numbers(16);
        let (a, b) = (numbers.floats(m * k), numbers.floats(k * n));
        let (left, right) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let out = stream.zeros::<f32>(m * n).unwrap();
        let arguments = tables!((left, k), (right, n), (out, n));
        // SAFETY: as above; all sizes are multiples of the tiles.
        unsafe { kernel.launch(stream, per_2d((n, m), (8, 8)), arguments) }.unwrap();
        let expected = product(n, k, &wide(&a), &wide(&b));
        assert_close(&out.read_blocking(stream).unwrap(), &expected, (k * k) as f64 * 6e-8);
    });
}

/// The steps until `z * z + c` leaves the circle.
fn steps(c: [f64; 2]) -> i64 {
    let (mut x, mut y) = (0.0_f64, 0.0_f64);
    let mut steps = 0;
    while steps < 50 && x.hypot(y) <= 2.0 {
        (x, y) = (x * x - y * y + c[0], 2.0 * x * y + c[1]);
        steps += 1;
    }
    steps
}

#[test]
fn complex_numbers_are_squared() {
    with_numba!("complex_squares", |kernel, stream| {
        let mut numbers = Numbers(17);
        let n = size(200, 100_000);
        let points: Vec<[f64; 2]> =
            (0..n).map(|_| [f64::from(numbers.float()) * 2.0, f64::from(numbers.float())]).collect();
        let (input, out) = (stream.upload(&points).unwrap(), stream.zeros::<i64>(n).unwrap());
        // SAFETY: as for the other arrays.
        unsafe { kernel.launch(stream, per(n, 64), lists!([] input, out)) }.unwrap();
        let mut compared = 0;
        for (point, found) in points.iter().zip(out.read_blocking(stream).unwrap()) {
            // Near the edge of the set, the steps depend on how each operation is rounded.
            let near = [-1e-7, 1e-7].map(|by| steps([point[0] + by, point[1] + by]));
            if near[0] == near[1] {
                assert_eq!(found, steps(*point), "{point:?}");
                compared += 1;
            }
        }
        assert!(compared > n * 9 / 10, "{compared}");
    });
}
