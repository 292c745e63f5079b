//! Kernels by nvcc with the headers of its toolkit: cooperative groups, `wmma`, 16-bit floats, CUB.

use cuda_handles::Stream;
use cuda_launch::{LaunchConfig, kernel, per};

use super::{text, with_library};
use crate::results::reference::{Numbers, assert_close, halves, product, size, wide};

kernel! {
    // SAFETY: each kernel checks its indices against `n` or `pairs`, or touches a tile or a part of
    // fixed size for each block.
    unsafe in "../../../../kernels/compilers/toolkit-nvcc.ptx";

    struct Toolkit;

    fn groups_sum(n: u32, input: In<i32>, total: InOut<i32>)
    where input.len() >= n, total.len() >= 1, block.product() % 32 == 0;
    fn groups_largest(n: u32, input: In<u32>, out: Out<u32>)
    where input.len() >= n, 8 * out.len() >= n, block.x % 32 == 0, block.product() == block.x;
    fn halves_fma(
        pairs: u32, a: In<[u16; 2]>, b: In<[u16; 2]>, c: In<[u16; 2]>, out: Out<[u16; 2]>, sums: Out<u16>
    ) named "halves"
    where a.len() >= pairs, b.len() >= pairs, c.len() >= pairs, out.len() >= pairs, sums.len() >= pairs;
    fn cub_sort(input: In<u32>, out: Out<u32>)
    where input.len() >= 256 * grid.x, out.len() >= 256 * grid.x, block.x == 64, block.product() == 64;
    fn cub_scan(input: In<i32>, out: Out<i32>, totals: Out<i32>)
    where input.len() >= 256 * grid.x, out.len() >= 256 * grid.x, totals.len() >= grid.x,
        block.x == 128, block.product() == 128;
}

kernel! {
    // SAFETY: a block reads a row of tiles and a column of tiles, and writes one tile.
    unsafe in "../../../../kernels/compilers/wmma-nvcc.ptx";

    fn wmma_matmul(n: u32, k: u32, a: In<u16>, b: In<u16>, c: Out<f32>)
    where n == 16 * grid.x, k % 16 == 0, a.len() >= 16 * grid.y * k, b.len() >= k * n,
        c.len() >= 16 * grid.y * n, grid.z == 1, block.x == 32, block.product() == 32;
}

kernel! {
    // SAFETY: `grid_scan` checks its index; blocks of a cooperative launch run at the same time.
    unsafe in "../../../../kernels/compilers/grid-nvcc.ptx";

    fn grid_scan(n: u32, first: InOut<u32>, second: InOut<u32>)
    where cooperative, n < 1 << 31, first.len() >= n, second.len() >= n,
        grid.product() * block.product() >= n;
}

/// Calls the test where the driver and its first device take the kernels.
fn with_toolkit(test: impl Fn(&Toolkit, &Stream)) {
    with_library(text!("toolkit-nvcc"), |library, stream| {
        // SAFETY: the library is that image.
        test(&unsafe { Toolkit::of(library) }.unwrap(), stream);
    });
}

#[test]
fn cooperative_groups_reduce() {
    with_toolkit(|kernels, stream| {
        let n = size(1003, 1_000_003);
        let numbers = Numbers(5).words(n);
        let signed: Vec<i32> = numbers.iter().copied().map(u32::cast_signed).collect();
        let (input, total) = (stream.upload(&signed).unwrap(), stream.zeros::<i32>(1).unwrap());
        kernels.groups_sum.launch(stream, LaunchConfig::new(3, 96), (n as u32, &input, &total)).unwrap();
        let sum = signed.iter().fold(0, |sum: i32, number| sum.wrapping_add(*number));
        assert_eq!(total.read_blocking(stream).unwrap(), [sum]);

        let (input, out) = (stream.upload(&numbers).unwrap(), stream.zeros::<u32>(n.div_ceil(8)).unwrap());
        kernels.groups_largest.launch(stream, per(n, 64), (n as u32, &input, &out)).unwrap();
        let expected: Vec<u32> = numbers.chunks(8).map(|eight| *eight.iter().max().unwrap()).collect();
        assert_eq!(out.read_blocking(stream).unwrap(), expected);
    });
}

#[test]
fn pairs_of_halves_are_multiplied_and_added() {
    with_toolkit(|kernels, stream| {
        let pairs = size(500, 100_000);
        let mut numbers = Numbers(6);
        let [a, b, c] = [(); 3].map(|()| numbers.eighths(2 * pairs));
        let [x, y, z] = [&a, &b, &c].map(|list| stream.upload(halves(list).as_chunks::<2>().0).unwrap());
        let (out, sums) = (stream.zeros::<[u16; 2]>(pairs).unwrap(), stream.zeros::<u16>(pairs).unwrap());
        kernels.halves_fma.launch(stream, per(pairs, 64), (pairs as u32, &x, &y, &z, &out, &sums)).unwrap();
        // Multiples of 1/64 below 20 have eleven digits at most.
        let expected: Vec<f32> = a.iter().zip(&b).zip(&c).map(|((a, b), c)| a * b + c).collect();
        assert_eq!(out.read_blocking(stream).unwrap().as_flattened(), halves(&expected));
        // A brain float is the upper half of a float, rounded to the nearest, to even from between.
        let brain = |sum: f32| (sum.to_bits() + 0x7fff + (sum.to_bits() >> 16 & 1)) >> 16;
        let rounded: Vec<u16> =
            expected.as_chunks::<2>().0.iter().map(|[low, high]| brain(low + high) as u16).collect();
        assert_eq!(sums.read_blocking(stream).unwrap(), rounded);
    });
}

#[test]
fn warps_multiply_matrices_of_halves() {
    with_library(text!("wmma-nvcc"), |library, stream| {
        // SAFETY: the library is that image.
        let kernel = unsafe { wmma_matmul::of(library) }.unwrap();
        let (m, n, k) = (size(32, 320), size(48, 160), size(32, 256));
        let mut numbers = Numbers(7);
        let (a, b) = (numbers.eighths(m * k), numbers.eighths(k * n));
        let (left, right) = (stream.upload(&halves(&a)).unwrap(), stream.upload(&halves(&b)).unwrap());
        let out = stream.zeros::<f32>(m * n).unwrap();
        let config = LaunchConfig::new((n as u32 / 16, m as u32 / 16), 32);
        kernel.launch(stream, config, (n as u32, k as u32, &left, &right, &out)).unwrap();
        // Sums of multiples of 1/64 below 2^12 are exact.
        assert_close(&out.read_blocking(stream).unwrap(), &product(n, k, &wide(&a), &wide(&b)), 0.0);
    });
}

#[test]
fn cub_sorts_scans_and_reduces() {
    with_toolkit(|kernels, stream| {
        let blocks = size(2, 1000);
        let mut numbers = Numbers(8).words(256 * blocks);
        let (input, out) = (stream.upload(&numbers).unwrap(), stream.zeros::<u32>(256 * blocks).unwrap());
        kernels.cub_sort.launch(stream, LaunchConfig::new(blocks as u32, 64), (&input, &out)).unwrap();

        let signed: Vec<i32> = numbers.iter().copied().map(u32::cast_signed).collect();
        let (values, sums) = (stream.upload(&signed).unwrap(), stream.zeros::<i32>(256 * blocks).unwrap());
        let totals = stream.zeros::<i32>(blocks).unwrap();
        let config = LaunchConfig::new(blocks as u32, 128);
        kernels.cub_scan.launch(stream, config, (&values, &sums, &totals)).unwrap();

        numbers.chunks_mut(256).for_each(<[u32]>::sort_unstable);
        assert_eq!(out.read_blocking(stream).unwrap(), numbers);
        let sums = sums.read_blocking(stream).unwrap();
        let add = |sum: &mut i32, number: &i32| {
            *sum = sum.wrapping_add(*number);
            Some(*sum)
        };
        let expected: Vec<i32> = signed.chunks(256).flat_map(|part| part.iter().scan(0, add)).collect();
        assert_eq!(sums, expected);
        let last: Vec<i32> = expected.chunks(256).map(|part| part[255]).collect();
        assert_eq!(totals.read_blocking(stream).unwrap(), last);
    });
}

#[test]
fn all_threads_of_a_grid_wait_for_each_other() {
    with_library(text!("grid-nvcc"), |library, stream| {
        // SAFETY: the library is that image.
        let kernel = unsafe { grid_scan::of(library) }.unwrap();
        let n = size(500, 10_000);
        let numbers = Numbers(23).words(n);
        let (first, second) = (stream.upload(&numbers).unwrap(), stream.zeros::<u32>(n).unwrap());
        let config = per(n, size(64, 256) as u32).cooperative();
        kernel.launch(stream, config, (n as u32, &first, &second)).unwrap();
        let add = |sum: &mut u32, number: &u32| {
            *sum = sum.wrapping_add(*number);
            Some(*sum)
        };
        let expected: Vec<u32> = numbers.iter().scan(0, add).collect();
        assert_eq!(first.read_blocking(stream).unwrap(), expected);
    });
}
