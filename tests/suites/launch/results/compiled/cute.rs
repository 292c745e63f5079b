//! Kernels of CUTLASS's language CuTe, whose tensors are structures of an address, the extents and
//! the strides that are not known to the compiler.

use cuda_handles::{Buffer, Element, Image};
use cuda_launch::{LaunchConfig, kernel, per};

use super::{text, with_library};
use crate::results::reference::{Numbers, assert_close, halves, product, row_softmax, size, wide};

/// A tensor with one extent: a list, or a table with rows of known length.
#[repr(C)]
#[derive(Clone, Copy)]
struct List {
    data: u64,
    length: i32,
}

/// A table.
#[repr(C)]
#[derive(Clone, Copy)]
struct Table {
    data: u64,
    rows: i32,
    columns: i32,
    stride: i32,
}

fn list<T: Element>(buffer: &Buffer<T>, length: usize) -> List {
    List { data: buffer.address(), length: length as i32 }
}

fn table<T: Element>(buffer: &Buffer<T>, columns: usize) -> Table {
    let rows = (buffer.len() / columns) as i32;
    Table { data: buffer.address(), rows, columns: columns as i32, stride: columns as i32 }
}

kernel! {
    // SAFETY: the tensors have these fields; the rest is for the launches.
    unsafe in Image::Ptx(text!("cute-saxpy"));

    /// # Safety
    /// Both lists have `n` elements, in memory of the stream that lives until the launch has ended.
    unsafe fn saxpy(n: u32, a: f32, x: Struct<List>, y: Struct<List>) where block.x == 128;
}

kernel! {
    // SAFETY: as above.
    unsafe in Image::Ptx(text!("cute-softmax"));

    /// # Safety
    /// Both tables have a row for each block, in memory as above.
    unsafe fn softmax(columns: u32, x: Struct<Table>, out: Struct<Table>) where block.x == 32;
}

kernel! {
    // SAFETY: as above.
    unsafe in Image::Ptx(text!("cute-matmul"));

    /// # Safety
    /// `a` has 16 rows for each block of the first extent, `b` has 8 for each of the second, and
    /// `c` as many rows and columns, in memory as above.
    unsafe fn matmul(a: Struct<List>, b: Struct<List>, c: Struct<Table>) where block.x == 32;
}

#[test]
fn lists_are_scaled_and_added() {
    with_library(text!("cute-saxpy"), |library, stream| {
        // SAFETY: the library is that image.
        let kernel = unsafe { saxpy::of(library) }.unwrap();
        let n = size(300, 100_000);
        let mut numbers = Numbers(31);
        let (x, y) = (numbers.floats(n), numbers.floats(n));
        let (input, out) = (stream.upload(&x).unwrap(), stream.upload(&y).unwrap());
        let arguments = (n as u32, 0.3, list(&input, n), list(&out, n));
        // SAFETY: the lists have `n` elements, and are read on the stream before they go.
        unsafe { kernel.launch(stream, per(n, 128), arguments) }.unwrap();
        let expected: Vec<f64> =
            x.iter().zip(&y).map(|(x, y)| f64::from(0.3_f32) * f64::from(*x) + f64::from(*y)).collect();
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1.5e-7);
    });
}

#[test]
fn rows_have_a_softmax() {
    with_library(text!("cute-softmax"), |library, stream| {
        // SAFETY: the library is that image.
        let kernel = unsafe { softmax::of(library) }.unwrap();
        let (rows, columns) = (size(3, 300), size(75, 1000));
        let numbers: Vec<f32> = Numbers(32).floats(rows * columns).iter().map(|x| x * 20.0).collect();
        let (input, out) = (stream.upload(&numbers).unwrap(), stream.zeros::<f32>(rows * columns).unwrap());
        let arguments = (columns as u32, table(&input, columns), table(&out, columns));
        // SAFETY: there is a block for each row, and the tables are read before they go.
        unsafe { kernel.launch(stream, LaunchConfig::new(rows as u32, 32), arguments) }.unwrap();
        let expected: Vec<f64> = wide(&numbers).chunks(columns).flat_map(row_softmax).collect();
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1e-5);
    });
}

#[test]
fn warps_multiply_tiles() {
    with_library(text!("cute-matmul"), |library, stream| {
        // SAFETY: the library is that image.
        let kernel = unsafe { matmul::of(library) }.unwrap();
        let (m, n, k) = (size(32, 320), size(24, 160), 64);
        let mut numbers = Numbers(33);
        let (a, b) = (numbers.eighths(m * k), numbers.eighths(k * n));
        let transposed: Vec<f32> = (0..n * k).map(|i| b[i % k * n + i / k]).collect();
        let (left, right) =
            (stream.upload(&halves(&a)).unwrap(), stream.upload(&halves(&transposed)).unwrap());
        let out = stream.zeros::<f32>(m * n).unwrap();
        let config = LaunchConfig::new((m as u32 / 16, n as u32 / 8), 32);
        let arguments = (list(&left, m), list(&right, n), table(&out, n));
        // SAFETY: the sizes are those of the grid, and the tensors are read before they go.
        unsafe { kernel.launch(stream, config, arguments) }.unwrap();
        // Sums of multiples of 1/64 below 2^12 are exact.
        assert_close(&out.read_blocking(stream).unwrap(), &product(n, k, &wide(&a), &wide(&b)), 0.0);
    });
}
