//! Integer and float arithmetic, and diverging branches.

use cuda_launch::{Launch, params, per, per_2d};
use cuda_tests::{no_leaks, setup};
use proptest::prelude::*;

use super::compiled;

fn interesting() -> impl Strategy<Value = i32> {
    prop_oneof![any::<i32>(), -40..40_i32, Just(i32::MIN), Just(i32::MAX)]
}

fn number() -> impl Strategy<Value = f32> {
    prop_oneof![
        3 => any::<u32>().prop_map(f32::from_bits),
        3 => -1000.0..1000.0_f32,
        1 => prop::sample::select(vec![0.0, -0.0, 1.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, f32::NAN]),
    ]
}

/// One number, any NaN standing for all of them; zeros of both signs may be one where the operation
/// does not say.
fn bits(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }
}

fn whole(x: i32, y: i32) -> [i32; 12] {
    let shift = y as u32 & 31;
    let undefined = y == 0 || (x == i32::MIN && y == -1);
    let wide = i64::from(x) * i64::from(y);
    [
        x.wrapping_add(y),
        x.wrapping_sub(y),
        x.wrapping_mul(y),
        (wide >> 32) as i32,
        if undefined { 0 } else { x / y },
        if undefined { 0 } else { x % y },
        x >> shift,
        ((x as u32) << shift) as i32,
        ((x as u32) >> shift) as i32,
        x.min(y) ^ x.max(y),
        x.count_ones() as i32 + 100 * y.leading_zeros() as i32,
        (wide >> 7) as i32,
    ]
}

#[test]
fn integer_arithmetic_is_exact() {
    let context = setup();
    let (integers, stream) = (compiled!(&context, "arithmetic", "integers"), context.stream().unwrap());
    no_leaks(|| {
        proptest!(ProptestConfig::with_cases(24), |(pairs in prop::collection::vec((interesting(), interesting()), 1..200))| {
            let (a, b): (Vec<i32>, Vec<i32>) = pairs.iter().copied().unzip();
            let n = pairs.len();
            let (left, right) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
            let out = stream.zeros::<[i32; 12]>(n).unwrap();
            // SAFETY: the arguments are the kernel's, and it writes twelve words for each of n
            // pairs.
            unsafe { integers.launch(&stream, per(n, 64), params![n as u32, &left, &right, &out]) }.unwrap();
            for ((x, y), found) in pairs.iter().zip(out.read_blocking(&stream).unwrap()) {
                prop_assert_eq!(found, whole(*x, *y), "{} and {}", x, y);
            }
        });
    });
}

#[test]
fn float_arithmetic_is_exact() {
    let context = setup();
    let (floats, stream) = (compiled!(&context, "arithmetic", "floats"), context.stream().unwrap());
    no_leaks(|| {
        proptest!(ProptestConfig::with_cases(24), |(pairs in prop::collection::vec((number(), number()), 1..200))| {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            let n = pairs.len();
            let (left, right) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
            let out = stream.zeros::<[f32; 10]>(n).unwrap();
            // SAFETY: the arguments are the kernel's, and it writes ten numbers for each of n
            // pairs.
            unsafe { floats.launch(&stream, per(n, 64), params![n as u32, &left, &right, &out]) }.unwrap();
            for (&(x, y), found) in pairs.iter().zip(out.read_blocking(&stream).unwrap()) {
                let order = if x < y { 1.0 } else if x == y { 2.0 } else if x > y { 3.0 } else { 4.0 };
                let expected =
                    [x + y, x - y, x * y, x / y, x.abs().sqrt(), x.mul_add(y, x), x.min(y), x.max(y), order, x.floor() + y.trunc()];
                for (place, (found, expected)) in found.into_iter().zip(expected).enumerate() {
                    let zeros = (6..8).contains(&place) && found == 0.0 && expected == 0.0;
                    prop_assert!(zeros || bits(found) == bits(expected), "place {place} of {x:e} and {y:e}: {found:e}, not {expected:e}");
                }
            }
        });
    });
}

#[test]
fn conversions_round_and_saturate() {
    let context = setup();
    let (conversions, stream) = (compiled!(&context, "arithmetic", "conversions"), context.stream().unwrap());
    no_leaks(|| {
        proptest!(ProptestConfig::with_cases(24), |(input in prop::collection::vec(number(), 1..200))| {
            let n = input.len();
            let numbers = stream.upload(&input).unwrap();
            let (whole, counts) = (stream.zeros::<i32>(n).unwrap(), stream.zeros::<u32>(n).unwrap());
            let twice = stream.zeros::<f64>(n).unwrap();
            // SAFETY: the arguments are the kernel's, and all buffers have n elements.
            unsafe { conversions.launch(&stream, per(n, 64), params![n as u32, &numbers, &whole, &counts, &twice]) }.unwrap();
            let (whole, counts) = (whole.read_blocking(&stream).unwrap(), counts.read_blocking(&stream).unwrap());
            for (i, twice) in twice.read_blocking(&stream).unwrap().into_iter().enumerate() {
                let value = input[i];
                prop_assert_eq!(whole[i], value as i32, "{:e}", value);
                prop_assert_eq!(counts[i], value.round_ties_even() as u32, "{:e}", value);
                let expected = f64::from(value) * 2.0 + f64::from(whole[i] as i16);
                prop_assert!(twice == expected || (twice.is_nan() && expected.is_nan()), "{value:e}: {twice:e}, not {expected:e}");
            }
        });
    });
}

#[test]
fn threads_that_part_come_together_again() {
    let context = setup();
    no_leaks(|| {
        let (collatz, stream) = (compiled!(&context, "arithmetic", "collatz"), context.stream().unwrap());
        let input: Vec<u32> = (1..=1000).collect();
        let (numbers, steps) = (stream.upload(&input).unwrap(), stream.zeros::<u32>(1000).unwrap());
        // SAFETY: the arguments are the kernel's, and both buffers have 1000 elements.
        unsafe { collatz.launch(&stream, per(1000, 128), params![1000_u32, &numbers, &steps]) }.unwrap();
        let count = |mut value: u64| {
            let mut steps = 0_u32;
            while value > 1 {
                value = if value.is_multiple_of(2) { value / 2 } else { 3 * value + 1 };
                steps += 1;
            }
            steps
        };
        let expected: Vec<u32> = input.iter().map(|value| count(u64::from(*value))).collect();
        assert_eq!(steps.read_blocking(&stream).unwrap(), expected);
    });
}

#[test]
fn a_step_of_heat_has_the_same_bits() {
    let context = setup();
    let (step, stream) = (compiled!(&context, "heat", "heat_step"), context.stream().unwrap());
    no_leaks(|| {
        proptest!(ProptestConfig::with_cases(12), |(width in 1_usize..40, height in 1_usize..30, seed in any::<u32>())| {
            let plate: Vec<f32> =
                (0..width * height).map(|i| ((i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed) >> 20) as f32 * 0.37).collect();
            let (from, to) = (stream.upload(&plate).unwrap(), stream.zeros::<f32>(width * height).unwrap());
            let params = params![width as u32, height as u32, 0.2_f32, &from, &to];
            // SAFETY: the arguments are the kernel's, and both plates have width times height
            // cells.
            unsafe { step.launch(&stream, per_2d((width, height), (16, 8)), params) }.unwrap();
            let found = to.read_blocking(&stream).unwrap();
            for y in 0..height {
                for x in 0..width {
                    let cell = y * width + x;
                    let border = x == 0 || y == 0 || x == width - 1 || y == height - 1;
                    let expected = if border {
                        plate[cell]
                    } else {
                        let (sides, ends) = (plate[cell - 1] + plate[cell + 1], plate[cell - width] + plate[cell + width]);
                        plate[cell] + 0.2 * (sides + ends - 4.0 * plate[cell])
                    };
                    prop_assert_eq!(found[cell].to_bits(), expected.to_bits(), "cell {}, {}", x, y);
                }
            }
        });
    });
}
