//! Whole programs of several fields, as people write them in CUDA C++: `tests/kernels/fields`, each
//! compared with a plain computation in Rust. Whole numbers are equal; floats lie within a bound
//! that the test states.

mod attention;
mod bisection;
mod bitonic_sort;
mod fft;
mod hash_table;
mod histogram;
mod layer_norm;
mod life;
mod list_ranking;
mod matmul;
mod monte_carlo;
mod n_body;
mod radix_sort;
mod reduction;
mod scan;
mod softmax;
mod sparse;
mod tensor_matmul;
mod transpose;

use cuda_handles::{Context, Stream};
use cuda_tests::{is_soft, no_leaks, setup};

/// Calls the test with a stream.
fn with_stream(test: impl Fn(&Context, &Stream)) {
    let context = setup();
    no_leaks(|| test(&context, &context.stream().unwrap()));
}

/// The first size on the software driver, which interprets each thread, and the second on a GPU.
fn size(soft: usize, gpu: usize) -> usize {
    if is_soft() { soft } else { gpu }
}

/// Numbers that look random (SplitMix64), the same in every run.
struct Numbers(u64);

impl Numbers {
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 32) as u32
    }

    /// Below `limit`.
    fn below(&mut self, limit: u32) -> u32 {
        ((u64::from(self.word()) * u64::from(limit)) >> 32) as u32
    }

    /// From -1 to 1, with 23 bits behind the point.
    fn float(&mut self) -> f32 {
        (self.word() >> 8) as f32 / (1 << 23) as f32 - 1.0
    }

    fn words(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.word()).collect()
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }
}

/// Each number differs from the expected one by `bound` at most.
#[track_caller]
fn assert_close(found: &[f32], expected: &[f64], bound: f64) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let difference = (f64::from(*found) - expected).abs();
        assert!(difference <= bound, "element {i} is {found}, not {expected}: they differ by {difference}");
    }
}
