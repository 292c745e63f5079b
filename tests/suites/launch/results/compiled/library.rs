//! Kernels by nvcc that use more of its toolkit and of C++: pipelines, barriers, coalesced groups,
//! a merge sort, complex numbers, wide integers, floats of eight bits, objects of the heap.

use cuda_handles::Stream;
use cuda_launch::{LaunchConfig, kernel, per};

use super::{text, with_library};
use crate::results::reference::{Numbers, size};

kernel! {
    // SAFETY: each kernel checks its index, or touches parts of fixed size for a block.
    unsafe in "../../../../kernels/compilers/library-nvcc.ptx";

    struct Toolkit;

    fn pipeline(parts: u32, input: In<i32>, out: Out<i32>)
    where input.len() >= 128 * parts, out.len() >= 128 * parts, block.x == 128,
        block.product() == 128, grid.product() == 1;
    fn barrier(rounds: u32, out: Out<u32>)
    where out.len() >= block.x, block.product() == block.x, shared >= 4 * block.x,
        grid.product() == 1;
    fn coalesced(input: In<u32>, out: Out<[u32; 3]>)
    where input.len() >= 32, out.len() >= 32, block.x == 32, block.product() == 32, grid.product() == 1;
    fn merge_sort(input: In<f64>, out: Out<f64>)
    where input.len() >= 256, out.len() >= 256, block.x == 64, block.product() == 64,
        grid.product() == 1;
    fn complex_numbers(n: u32, input: In<[f64; 2]>, out: Out<[f64; 2]>)
    where input.len() >= n, out.len() >= n;
    fn wide_integers(n: u32, a: In<[u64; 2]>, b: In<[u64; 2]>, out: Out<[u64; 2]>)
    where a.len() >= n, b.len() >= n, out.len() >= 2 * n;
    fn eighths(n: u32, input: In<f32>, bits: Out<u8>, out: Out<[f32; 2]>)
    where input.len() >= n, bits.len() >= n, out.len() >= n;
    fn shapes(n: u32, out: Out<u32>) where out.len() >= n;
}

fn with_toolkit(test: impl Fn(&Toolkit, &Stream)) {
    with_library(text!("library-nvcc"), |library, stream| {
        // SAFETY: the library is that image.
        test(&unsafe { Toolkit::of(library) }.unwrap(), stream);
    });
}

#[test]
fn copies_come_through_a_pipeline() {
    with_toolkit(|kernels, stream| {
        let parts = size(5, 500);
        let numbers: Vec<i32> = (0..128 * parts as i32).collect();
        let (input, out) = (stream.upload(&numbers).unwrap(), stream.zeros::<i32>(128 * parts).unwrap());
        kernels.pipeline.launch(stream, LaunchConfig::new(1, 128), (parts as u32, &input, &out)).unwrap();
        let expected: Vec<i32> = numbers.chunks(128).flat_map(|part| part.iter().rev().copied()).collect();
        assert_eq!(out.read_blocking(stream).unwrap(), expected);
    });
}

#[test]
fn threads_meet_at_a_barrier_object() {
    with_toolkit(|kernels, stream| {
        let (threads, rounds) = (96, 20);
        let out = stream.zeros::<u32>(threads).unwrap();
        let config = LaunchConfig::new(1, threads as u32).shared_bytes(4 * threads as u32);
        kernels.barrier.launch(stream, config, (rounds, &out)).unwrap();
        let mut values: Vec<u32> = (0..threads as u32).collect();
        for _ in 0..rounds {
            let next: Vec<u32> = (0..threads).map(|i| values[(i + 1) % threads]).collect();
            values.iter_mut().zip(next).for_each(|(value, next)| *value = value.wrapping_add(next));
        }
        assert_eq!(out.read_blocking(stream).unwrap(), values);
    });
}

#[test]
fn threads_that_are_there_make_a_group() {
    with_toolkit(|kernels, stream| {
        let values: Vec<u32> = Numbers(35).words(32).iter().map(|word| word % 1000).collect();
        let (input, out) = (stream.upload(&values).unwrap(), stream.zeros::<[u32; 3]>(32).unwrap());
        kernels.coalesced.launch(stream, LaunchConfig::new(1, 32), (&input, &out)).unwrap();
        let expected: Vec<[u32; 3]> = (0..32)
            .map(|i| {
                let is_there = |other: &&u32| **other % 3 == values[i] % 3;
                let place = values[..i].iter().filter(is_there).count() as u32;
                let up_to = values[i / 8 * 8..=i].iter().sum();
                [values.iter().filter(is_there).sum(), place, up_to]
            })
            .collect();
        assert_eq!(out.read_blocking(stream).unwrap(), expected);
    });
}

#[test]
fn a_block_sorts_by_merging() {
    with_toolkit(|kernels, stream| {
        let mut values: Vec<f64> = Numbers(36).floats(256).iter().copied().map(f64::from).collect();
        let (input, out) = (stream.upload(&values).unwrap(), stream.zeros::<f64>(256).unwrap());
        kernels.merge_sort.launch(stream, LaunchConfig::new(1, 64), (&input, &out)).unwrap();
        values.sort_by(f64::total_cmp);
        assert_eq!(out.read_blocking(stream).unwrap(), values);
    });
}

/// exp(z) * sqrt(z) / (z + 2).
fn complex([x, y]: [f64; 2]) -> [f64; 2] {
    let product = |[a, b]: [f64; 2], [c, d]: [f64; 2]| [a * c - b * d, a * d + b * c];
    let length = x.hypot(y);
    let root = [((length + x) / 2.0).sqrt(), ((length - x) / 2.0).sqrt().copysign(y)];
    let power = [x.exp() * y.cos(), x.exp() * y.sin()];
    let square = (x + 2.0) * (x + 2.0) + y * y;
    product(product(power, root), [(x + 2.0) / square, -y / square])
}

#[test]
fn complex_numbers_have_powers_and_roots() {
    with_toolkit(|kernels, stream| {
        let n = size(200, 100_000);
        let numbers: Vec<[f64; 2]> = Numbers(37)
            .floats(2 * n)
            .as_chunks()
            .0
            .iter()
            .map(|pair: &[f32; 2]| pair.map(f64::from))
            .collect();
        let (input, out) = (stream.upload(&numbers).unwrap(), stream.zeros::<[f64; 2]>(n).unwrap());
        kernels.complex_numbers.launch(stream, per(n, 64), (n as u32, &input, &out)).unwrap();
        for (number, found) in numbers.iter().zip(out.read_blocking(stream).unwrap()) {
            let expected = complex(*number);
            let distance = (found[0] - expected[0]).hypot(found[1] - expected[1]);
            // The root of a number near the negative axis loses half of the digits of its small
            // part.
            assert!(distance < 1e-7, "{found:?} and {expected:?} for {number:?}");
        }
    });
}

fn words(number: i128) -> [u64; 2] {
    [number as u64, (number >> 64) as u64]
}

#[test]
fn wide_integers_are_multiplied_and_divided() {
    with_toolkit(|kernels, stream| {
        let n = size(200, 100_000);
        let mut numbers = Numbers(38);
        let mut number = || {
            let bits = numbers.words(4).iter().fold(0, |bits, word| bits << 32 | i128::from(*word));
            // Numbers of all lengths.
            bits >> numbers.below(127)
        };
        let pairs: Vec<(i128, i128)> = (0..n).map(|_| (number(), number())).collect();
        let side = |pick: fn(&(i128, i128)) -> i128| -> Vec<[u64; 2]> {
            pairs.iter().map(|pair| words(pick(pair))).collect()
        };
        let (a, b) =
            (stream.upload(&side(|pair| pair.0)).unwrap(), stream.upload(&side(|pair| pair.1)).unwrap());
        let out = stream.zeros::<[u64; 2]>(2 * n).unwrap();
        kernels.wide_integers.launch(stream, per(n, 64), (n as u32, &a, &b, &out)).unwrap();
        let quotient =
            |a: i128, b: i128| if b == 0 { 0 } else { a.wrapping_div(b).wrapping_add(a.wrapping_rem(b)) };
        let expected: Vec<[u64; 2]> =
            pairs.iter().flat_map(|(a, b)| [words(a.wrapping_mul(*b)), words(quotient(*a, *b))]).collect();
        assert_eq!(out.read_blocking(stream).unwrap(), expected);
    });
}

/// The value of a float of seven bits without a sign, as many of them behind the point as said.
fn small(bits: u32, mantissa: u32, bias: i32) -> f32 {
    let (exponent, fraction) = (bits >> mantissa, bits & ((1 << mantissa) - 1));
    let (hidden, exponent) = if exponent == 0 { (0, 1) } else { (1 << mantissa, exponent as i32) };
    (hidden + fraction) as f32 * 2.0_f32.powi(exponent - bias - mantissa as i32)
}

/// The bits of the nearest of the first `count` floats without a sign; between two, the even one.
fn nearest(x: f32, count: u32, mantissa: u32, bias: i32) -> u32 {
    let distance = |bits: &u32| (small(*bits, mantissa, bias) - x.abs()).abs();
    (0..count).min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a % 2).cmp(&(b % 2)))).unwrap()
}

#[test]
fn floats_are_rounded_to_eight_bits() {
    with_toolkit(|kernels, stream| {
        let n = size(500, 10_000);
        let mut numbers = Numbers(39);
        // Multiples of 2^-12 up to 2^8, of which many lie between two of the others, and some
        // beyond the largest.
        let values: Vec<f32> = (0..n)
            .map(|_| (numbers.float() * 2048.0).round() / 2048.0 * 2.0_f32.powi(numbers.below(10) as i32))
            .collect();
        let input = stream.upload(&values).unwrap();
        let (bits, out) = (stream.zeros::<u8>(n).unwrap(), stream.zeros::<[f32; 2]>(n).unwrap());
        kernels.eighths.launch(stream, per(n, 64), (n as u32, &input, &bits, &out)).unwrap();
        let expected: Vec<(u8, [f32; 2])> = values
            .iter()
            .map(|x| {
                // The last pattern of the first is not a number, and the last four of the second.
                let (precise, wide) = (nearest(*x, 0x7f, 3, 7), nearest(*x, 0x7c, 2, 15));
                let sign = if x.is_sign_negative() { 0x80 } else { 0 };
                let values = [small(precise, 3, 7), small(wide, 2, 15)];
                (sign | precise as u8, values.map(|value| value.copysign(*x)))
            })
            .collect();
        let found = bits.read_blocking(stream).unwrap().into_iter().zip(out.read_blocking(stream).unwrap());
        assert_eq!(found.collect::<Vec<_>>(), expected);
    });
}

#[test]
fn objects_live_on_the_heap_of_the_device() {
    with_toolkit(|kernels, stream| {
        let n = size(100, 2000);
        let out = stream.zeros::<u32>(n).unwrap();
        kernels.shapes.launch(stream, per(n, 32), (n as u32, &out)).unwrap();
        fn area(depth: u32, side: u32) -> u32 {
            if depth == 0 { side * side } else { area(depth - 1, side) + area(depth - 1, side + 1) }
        }
        let expected: Vec<u32> = (0..n as u32).map(|i| area(i % 4, i)).collect();
        assert_eq!(out.read_blocking(stream).unwrap(), expected);
    });
}
