//! Random numbers, the same on every device.

use cuda_launch::{LaunchConfig, kernel, per};

use crate::results::reference::{size, with_stream};

kernel! {
    // SAFETY: `philox_numbers` writes its first `count` elements, and `monte_carlo_pi` adds to one.
    unsafe in "../../../../kernels/fields/monte_carlo.ptx";

    struct MonteCarlo;

    fn philox_numbers(count: u32, seed: u64, output: Out<[u32; 4]>) where output.len() >= count;
    fn monte_carlo_pi(rounds: u32, seed: u64, hits: InOut<u64>)
    where hits.len() >= 1, block.y * block.z == 1, grid.y * grid.z == 1;
}

/// Philox 4x32 with ten rounds.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    let product = |factor: u32, word: u32| {
        let product = u64::from(factor) * u64::from(word);
        ((product >> 32) as u32, product as u32)
    };
    for _ in 0..10 {
        let (high0, low0) = product(0xd251_1f53, counter[0]);
        let (high1, low1) = product(0xcd9e_8d57, counter[2]);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

fn key(seed: u64) -> [u32; 2] {
    [seed as u32, (seed >> 32) as u32]
}

#[test]
fn numbers_are_those_of_the_generator() {
    // The test vectors of its authors for a counter and key of zeros.
    assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    with_stream(|context, stream| {
        let kernels = MonteCarlo::load(context).unwrap();
        let (count, seed) = (size(300, 100_000), 0x0123_4567_89ab_cdef);
        let output = stream.zeros::<[u32; 4]>(count).unwrap();
        kernels.philox_numbers.launch(stream, per(count, 64), (count as u32, seed, &output)).unwrap();
        let expected: Vec<[u32; 4]> = (0..count as u32).map(|i| philox([i, 0, 0, 0], key(seed))).collect();
        assert_eq!(output.read_blocking(stream).unwrap(), expected);
    });
}

#[test]
fn darts_hit_a_quarter_circle() {
    with_stream(|context, stream| {
        let kernels = MonteCarlo::load(context).unwrap();
        let (blocks, rounds, seed) = (size(2, 100) as u32, size(10, 100) as u32, 2026);
        let hits = stream.zeros::<u64>(1).unwrap();
        let config = LaunchConfig::new(blocks, 128);
        kernels.monte_carlo_pi.launch(stream, config, (rounds, seed, &hits)).unwrap();
        let found = hits.read_blocking(stream).unwrap()[0];
        let is_hit = |x: u32, y: u32| {
            let (x, y) = (u64::from(x >> 1), u64::from(y >> 1));
            x * x + y * y < 1 << 62
        };
        let mut expected = 0;
        for thread in 0..blocks * 128 {
            for round in 0..rounds {
                let four = philox([thread, round, 0, 0], key(seed));
                expected += u64::from(is_hit(four[0], four[1])) + u64::from(is_hit(four[2], four[3]));
            }
        }
        assert_eq!(found, expected);
        let darts = f64::from(blocks * 128 * rounds * 2);
        let pi = 4.0 * found as f64 / darts;
        // Five standard deviations.
        assert!((pi - std::f64::consts::PI).abs() < 5.0 * 1.65 / darts.sqrt(), "{pi}");
    });
}
