//! Whole products of matrices, as compilers make them of `data/products.cu`.

use super::matrices::Numbers;
use super::tensors::{F16, Map};
use super::{Memory, arg, bytes_of, launch, load};

pub(super) const PRODUCTS: &str = include_str!("data/products.ptx");

/// A multiple of 1/4 between -8 and 8, whose products and sums are exact, as a half and as a value.
fn sample(numbers: &mut Numbers) -> (u16, f32) {
    let steps = (numbers.bits() % 65) as i32 - 32;
    if steps == 0 {
        return (0, 0.0);
    }
    let exponent = steps.unsigned_abs().ilog2();
    let fraction = (steps.unsigned_abs() << (10 - exponent)) & 0x3ff;
    let sign = if steps < 0 { 1 << 15 } else { 0 };
    (sign | ((exponent + 13) << 10 | fraction) as u16, steps as f32 / 4.0)
}

fn matrix(numbers: &mut Numbers, len: usize) -> (Vec<u8>, Vec<f32>) {
    let (halves, values): (Vec<u16>, Vec<f32>) = (0..len).map(|_| sample(numbers)).unzip();
    (halves.iter().flat_map(|half| half.to_le_bytes()).collect(), values)
}

/// The product of `a`, of rows of `k`, and `b`, whose element in row `i` and column `j` is at
/// `b_at(i, j)`.
fn product(a: &[f32], b: &[f32], n: usize, k: usize, b_at: impl Fn(usize, usize) -> usize) -> Vec<f32> {
    let element = |index: usize| -> f32 {
        let (row, column) = (index / n, index % n);
        (0..k).map(|at| a[row * k + at] * b[b_at(at, column)]).sum()
    };
    (0..a.len() / k * n).map(element).collect()
}

#[test]
fn products_with_copies_on_their_way() {
    let mut numbers = Numbers(3);
    for (m, n, k) in [(64, 64, 32), (100, 72, 96), (8, 136, 64)] {
        let ((a_halves, a), (b_halves, b)) = (matrix(&mut numbers, m * k), matrix(&mut numbers, k * n));
        let mut memory = Memory::default();
        let (a_at, b_at) = (memory.put(&a_halves), memory.put(&b_halves));
        let c_at = memory.put(&vec![0_f32; m * n]);
        let sizes = [m, n, k].map(|size| arg(size as i32));
        let args = [vec![arg(a_at), arg(b_at), arg(c_at)], sizes.to_vec()].concat();
        let grid = [n.div_ceil(64) as u32, m.div_ceil(64) as u32, 1];
        launch(&load(PRODUCTS), &mut memory, "gemm_mma", grid, [128, 1, 1], 0, &args).unwrap();
        assert_eq!(
            memory.get::<f32>(c_at),
            product(&a, &b, n, k, |row, column| row * n + column),
            "{m} {n} {k}"
        );
    }
}

#[test]
fn products_of_fragments() {
    let mut numbers = Numbers(4);
    let (m, n, k) = (32, 48, 64);
    let ((a_halves, a), (b_halves, b)) = (matrix(&mut numbers, m * k), matrix(&mut numbers, k * n));
    let mut memory = Memory::default();
    let (a_at, b_at) = (memory.put(&a_halves), memory.put(&b_halves));
    let c_at = memory.put(&vec![0_f32; m * n]);
    let sizes = [m, n, k].map(|size| arg(size as i32));
    let args = [vec![arg(a_at), arg(b_at), arg(c_at)], sizes.to_vec()].concat();
    launch(&load(PRODUCTS), &mut memory, "gemm_wmma", [3, 2, 1], [32, 1, 1], 0, &args).unwrap();
    assert_eq!(memory.get::<f32>(c_at), product(&a, &b, n, k, |row, column| row * n + column));
}

#[test]
fn products_with_a_warp_that_loads() {
    let mut numbers = Numbers(5);
    // The last tiles go beyond the matrices, where zeros are.
    for (m, n, k) in [(64, 64, 64), (128, 96, 264)] {
        let ((a_halves, a), (b_halves, b)) = (matrix(&mut numbers, m * k), matrix(&mut numbers, n * k));
        let mut memory = Memory::default();
        let (a_at, b_at) = (memory.put(&a_halves), memory.put(&b_halves));
        let c_at = memory.put(&vec![0_f32; m * n]);
        let map = |rows: usize, address: u64| {
            let map = Map {
                ty: F16,
                dims: vec![k as u64, rows as u64],
                strides: vec![2 * k as u64],
                boxes: vec![64, 64],
                steps: vec![1, 1],
                swizzle: 3,
                fill: 0,
            };
            bytes_of(&map.words(address))
        };
        let args = [map(m, a_at), map(n, b_at), arg(c_at), arg(n as i32), arg(k as i32)];
        let grid = [n.div_ceil(64) as u32, m.div_ceil(64) as u32, 1];
        launch(&load(PRODUCTS), &mut memory, "gemm_wgmma", grid, [160, 1, 1], 32768, &args).unwrap();
        assert_eq!(
            memory.get::<f32>(c_at),
            product(&a, &b, n, k, |row, column| column * k + row),
            "{m} {n} {k}"
        );
    }
}
