//! Data for kernels, and what these compute, in plain Rust and double precision.

use cuda_handles::{Context, Stream};
use cuda_tests::{is_soft, no_leaks, setup};

/// Calls the test with a stream.
pub(super) fn with_stream(test: impl Fn(&Context, &Stream)) {
    let context = setup();
    no_leaks(|| test(&context, &context.stream().unwrap()));
}

/// The first size on the software driver, which interprets each thread, and the second on a GPU.
pub(super) fn size(soft: usize, gpu: usize) -> usize {
    if is_soft() { soft } else { gpu }
}

/// Numbers that look random (SplitMix64), the same in every run.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 32) as u32
    }

    /// Below `limit`.
    pub(super) fn below(&mut self, limit: u32) -> u32 {
        ((u64::from(self.word()) * u64::from(limit)) >> 32) as u32
    }

    /// From -1 to 1, with 23 bits behind the point.
    pub(super) fn float(&mut self) -> f32 {
        (self.word() >> 8) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Multiples of 1/8 below 4, as 16-bit floats hold them.
    pub(super) fn eighths(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| (self.below(63) as f32 - 31.0) / 8.0).collect()
    }

    pub(super) fn words(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.word()).collect()
    }

    pub(super) fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }
}

/// Each number differs from the expected one by `bound` at most.
#[track_caller]
pub(super) fn assert_close(found: &[f32], expected: &[f64], bound: f64) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let difference = (f64::from(*found) - expected).abs();
        assert!(difference <= bound, "element {i} is {found}, not {expected}: they differ by {difference}");
    }
}

/// Numbers as 16-bit floats, which hold them exactly and not as denormal ones.
pub(super) fn halves(numbers: &[f32]) -> Vec<u16> {
    let half = |number: &f32| {
        let bits = number.to_bits();
        let sign = bits >> 16 & 0x8000;
        // Exponents count from -127 and from -15.
        if *number == 0.0 { sign } else { sign | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff) }
    };
    numbers.iter().map(|number| half(number) as u16).collect()
}

/// The product in double precision.
pub(super) fn product(n: usize, k: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let element = |row: &[f64], column: usize| (0..k).map(|i| row[i] * b[i * n + column]).sum();
    a.chunks(k).flat_map(|row| (0..n).map(move |column| element(row, column))).collect()
}

pub(super) fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().copied().map(f64::from).collect()
}

/// The share of each power in the sum of all.
pub(super) fn row_softmax(row: &[f64]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = row.iter().map(|value| (value - largest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

/// The row with mean 0 and variance 1, scaled and shifted.
pub(super) fn row_norm(epsilon: f32, row: &[f32], weight: &[f32], bias: &[f32]) -> Vec<f64> {
    let count = row.len() as f64;
    let mean = row.iter().copied().map(f64::from).sum::<f64>() / count;
    let variance = row.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / count;
    let scale = 1.0 / (variance + f64::from(epsilon)).sqrt();
    let factors = weight.iter().zip(bias).map(|(weight, bias)| (f64::from(*weight), f64::from(*bias)));
    row.iter()
        .zip(factors)
        .map(|(x, (weight, bias))| (f64::from(*x) - mean) * scale * weight + bias)
        .collect()
}

/// The means of values that each query of one head makes, by the softmax of its scores.
pub(super) fn attended(
    width: usize,
    scale: f32,
    is_causal: bool,
    queries: &[f32],
    keys: &[f32],
    values: &[f32],
) -> Vec<f64> {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(a * scale) * f64::from(*b)).sum()
    };
    let mut out = Vec::new();
    for (place, query) in queries.chunks(width).enumerate() {
        let seen = if is_causal { place + 1 } else { usize::MAX };
        let scores: Vec<f64> = keys.chunks(width).take(seen).map(|key| dot(query, key)).collect();
        let shares = row_softmax(&scores);
        out.extend((0..width).map(|i| -> f64 {
            let column = values.chunks(width).map(|value| f64::from(value[i]));
            shares.iter().zip(column).map(|(share, value)| share * value).sum()
        }));
    }
    out
}
