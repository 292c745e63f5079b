//! Triton's tiles, by two of its versions and for two generations of devices: products by tensor
//! cores with copies in the background, attention, layer normalisation, sums up to each element.

use cuda_handles::{Buffer, Kernel, Stream};
use cuda_launch::{Launch, LaunchConfig, Swizzle, Tiled, params};

use super::{text, with_library};
use crate::results::reference::{Numbers, assert_close, attended, halves, product, row_norm, size, wide};

/// A kernel as one version of Triton made it.
struct Made {
    name: &'static str,
    image: &'static str,
    /// Bytes of dynamic shared memory that the compiler asks for.
    shared: u32,
}

macro_rules! made {
    ($file:literal, $shared:literal) => {
        Made { name: $file, image: text!("triton-", $file), shared: $shared }
    };
}

/// Bytes of dynamic shared memory for boxes of tensors.
const SHARED: u32 = 49_176;

/// Threads of a block.
const THREADS: u32 = 128;

/// Calls the test with the launch of each kernel that the driver and its first device take, and
/// whether it is of the newer version.
fn each(
    entry: &str,
    all: &[Made],
    test: impl Fn(&Stream, &dyn Fn((u32, u32)) -> (Kernel, LaunchConfig), bool),
) {
    for made in all {
        println!("{}", made.name);
        with_library(made.image, |library, stream| {
            let launch = |grid: (u32, u32)| {
                let config = LaunchConfig::new(grid, THREADS).shared_bytes(made.shared);
                (library.kernel(entry).unwrap(), config)
            };
            test(stream, &launch, made.name.starts_with("3.9"));
        });
    }
}

/// Launches with two addresses of scratch memory more, which the kernels do not use, for newer
/// versions.
macro_rules! launch {
    ($launch:expr, $is_new:expr, $stream:expr, $grid:expr, [$($argument:expr),+]) => {{
        let (kernel, config) = $launch($grid);
        // SAFETY: the arguments are the kernel's, and it touches only elements within the sizes.
        unsafe {
            if $is_new {
                kernel.launch($stream, config, params![$($argument),+, 0_u64, 0_u64])
            } else {
                kernel.launch($stream, config, params![$($argument),+])
            }
        }
        .unwrap();
    }};
}

#[test]
fn tensor_cores_make_the_product() {
    let all = [
        made!("3.2-sm80-matmul", 12_288),
        made!("3.9-sm80-matmul", 12_288),
        made!("3.2-sm90-matmul", 18_432),
        made!("3.9-sm90-matmul", 18_432),
    ];
    each("matmul", &all, |stream, kernel, is_new| {
        let (m, n, k) = (size(70, 500), size(48, 400), size(80, 304));
        let mut numbers = Numbers(9);
        let (a, b) = (numbers.eighths(m * k), numbers.eighths(k * n));
        let (left, right) = (stream.upload(&halves(&a)).unwrap(), stream.upload(&halves(&b)).unwrap());
        let out = stream.zeros::<f32>(m * n).unwrap();
        let grid = (m.div_ceil(64) as u32, n.div_ceil(32) as u32);
        launch!(kernel, is_new, stream, grid, [&left, &right, &out, m as i32, n as i32, k as i32]);
        // Sums of multiples of 1/64 below 2^13 are exact, as those of tensor cores are.
        assert_close(&out.read_blocking(stream).unwrap(), &product(n, k, &wide(&a), &wide(&b)), 0.0);
    });
}

#[test]
fn attention_gives_the_weighted_means() {
    let all = [
        made!("3.2-sm80-attention", 12_288),
        made!("3.9-sm80-attention", 12_288),
        made!("3.2-sm90-attention", 16_384),
        made!("3.9-sm90-attention", 16_384),
    ];
    each("attention", &all, |stream, kernel, is_new| {
        let length = size(100, 500);
        let mut numbers = Numbers(10);
        let [q, k, v] = [(); 3].map(|()| numbers.eighths(length * 32));
        let [queries, keys, values] = [&q, &k, &v].map(|list| stream.upload(&halves(list)).unwrap());
        let out = stream.zeros::<f32>(length * 32).unwrap();
        let grid = (length.div_ceil(64) as u32, 1);
        launch!(kernel, is_new, stream, grid, [&queries, &keys, &values, &out, length as i32, 0.0625_f32]);
        // Powers are rounded to eleven digits before they weigh values below 4.
        assert_close(
            &out.read_blocking(stream).unwrap(),
            &attended(32, 0.0625, true, &q, &k, &v),
            4.0 / 2048.0,
        );
    });
}

#[test]
fn rows_are_normalised() {
    let all = [made!("3.2-sm80-layer_norm", 16), made!("3.9-sm80-layer_norm", 16)];
    each("layer_norm", &all, |stream, kernel, is_new| {
        let (rows, n) = (size(3, 500), 200);
        let mut numbers = Numbers(11);
        let values: Vec<f32> = numbers.floats(rows * n).iter().map(|x| x * 3.0 + 5.0).collect();
        let (weight, bias) = (numbers.floats(n), numbers.floats(n));
        let [x, factors, offsets] = [&values, &weight, &bias].map(|list| stream.upload(list).unwrap());
        let out = stream.zeros::<f32>(rows * n).unwrap();
        launch!(kernel, is_new, stream, (rows as u32, 1), [&x, &factors, &offsets, &out, n as i32, 1e-5_f32]);
        let expected: Vec<f64> =
            values.chunks(n).flat_map(|row| row_norm(1e-5, row, &weight, &bias)).collect();
        assert_close(&out.read_blocking(stream).unwrap(), &expected, 1e-5);
    });
}

#[test]
fn elements_are_summed_up_to_each() {
    let all = [made!("3.2-sm80-prefix", 32), made!("3.9-sm80-prefix", 32)];
    each("prefix", &all, |stream, kernel, is_new| {
        let n = size(700, 100_001);
        let numbers: Vec<i32> = Numbers(12).words(n).into_iter().map(u32::cast_signed).collect();
        let input = stream.upload(&numbers).unwrap();
        let (out, total) = (stream.zeros::<i32>(n).unwrap(), stream.zeros::<i32>(1).unwrap());
        launch!(kernel, is_new, stream, (n.div_ceil(256) as u32, 1), [&input, &out, &total, n as i32]);
        let add = |sum: &mut i32, number: &i32| {
            *sum = sum.wrapping_add(*number);
            Some(*sum)
        };
        let expected: Vec<i32> = numbers.chunks(256).flat_map(|part| part.iter().scan(0, add)).collect();
        assert_eq!(out.read_blocking(stream).unwrap(), expected);
        let sum = numbers.iter().fold(0, |sum: i32, number| sum.wrapping_add(*number));
        assert_eq!(total.read_blocking(stream).unwrap(), [sum]);
    });
}

#[test]
fn boxes_of_tensors_are_copied_in_the_background() {
    with_library(text!("triton-3.9-sm90-tma_matmul"), |library, stream| {
        let (m, n, k) = (size(100, 1000), size(72, 600), size(200, 400));
        let mut numbers = Numbers(34);
        let mut digits = |count| -> Vec<f32> { (0..count).map(|_| numbers.below(5) as f32 - 2.0).collect() };
        let (a, b) = (digits(m * k), digits(k * n));
        let (left, right) = (stream.upload(&halves(&a)).unwrap(), stream.upload(&halves(&b)).unwrap());
        let out = stream.zeros::<u16>(m * n).unwrap();
        let map = |buffer: &Buffer<u16>, rows: usize, columns: usize| {
            let shape = Tiled::new([columns as u64, rows as u64], [64, 64]).swizzle(Swizzle::Bytes128);
            shape.encode(buffer).unwrap()
        };
        let maps = (map(&left, m, k), map(&right, k, n), map(&out, m, n));
        let kernel = library.kernel("tma_matmul").unwrap();
        kernel.set_max_dynamic_shared_bytes(SHARED).unwrap();
        let grid = (m.div_ceil(64) as u32, n.div_ceil(64) as u32);
        let config = LaunchConfig::new(grid, THREADS).shared_bytes(SHARED);
        let (rows, columns, depth) = (m as i32, n as i32, k as i32);
        // A tensor is its map, its extents and its strides.
        let arguments = params![
            &maps.0, rows, depth, k as i64, 1_i64, &maps.1, depth, columns, n as i64, 1_i64, &maps.2, rows,
            columns, n as i64, 1_i64, depth, 0_u64, 0_u64
        ];
        // SAFETY: the arguments are the kernel's, and the maps keep to the tensors.
        unsafe { kernel.launch(stream, config, arguments) }.unwrap();
        // Sums of whole numbers below 2048 are exact in 16 bits.
        let expected: Vec<f32> =
            product(n, k, &wide(&a), &wide(&b)).into_iter().map(|sum| sum as f32).collect();
        assert_eq!(out.read_blocking(stream).unwrap(), halves(&expected));
    });
}
