//! The reference in plain Rust: the kernels' operations in the same order, so that the results are
//! equal to the bit.

use super::model::{self, Layer, SPEAKERS, Sizes};
use super::program::Results;

/// The last row and the caches after all tokens.
pub(crate) fn run(sizes: Sizes) -> Results {
    let layers = model::layers(sizes);
    let mut row = model::first_row(sizes);
    let mut caches = vec![vec![0.0; sizes.cache_len()]; SPEAKERS as usize];
    let part_len = sizes.cache_len() / layers.len();
    for token in 0..sizes.tokens {
        let (speaker, position) = sizes.turn(token);
        for (layer, part) in layers.iter().zip(caches[speaker].chunks_exact_mut(part_len)) {
            step(layer, position as usize, part, &mut row);
        }
    }
    Results { row, caches }
}

/// A token in a layer, with the layer's part of the cache.
fn step(layer: &Layer<Vec<f32>>, position: usize, part: &mut [f32], row: &mut [f32]) {
    let width = row.len();
    let projected = product(&layer.project, &normalised(row));
    let (query, key_and_value) = projected.split_at(width);
    part[position * 2 * width..][..2 * width].copy_from_slice(key_and_value);
    let attended = attended(query, &part[..(position + 1) * 2 * width]);
    let mixed = product(&layer.mix, &attended);
    row.iter_mut().zip(mixed).for_each(|(number, mixed)| *number += mixed);
    row.iter_mut().for_each(|number| *number /= 1.0 + number.abs());
}

fn normalised(row: &[f32]) -> Vec<f32> {
    let squares = row.iter().fold(0.0, |sum, number| sum + number * number);
    let root = (squares / row.len() as f32 + 1e-5).sqrt();
    row.iter().map(|number| number / root).collect()
}

fn product(weights: &[f32], row: &[f32]) -> Vec<f32> {
    let mut sums = vec![0.0; weights.len() / row.len()];
    for (number, weights) in row.iter().zip(weights.chunks_exact(sums.len())) {
        sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += number * weight);
    }
    sums
}

/// The mean of the values, by the squares of how well their keys fit.
fn attended(query: &[f32], part: &[f32]) -> Vec<f32> {
    let remembered = || part.chunks_exact(2 * query.len()).map(|both| both.split_at(query.len()));
    let fit = |key: &[f32]| query.iter().zip(key).fold(0.0, |sum, (a, b)| sum + a * b);
    let shares: Vec<f32> = remembered().map(|(key, _)| fit(key) * fit(key) + 1e-3).collect();
    let total = shares.iter().fold(0.0, |sum, share| sum + share);
    let mut sums = vec![0.0; query.len()];
    for (share, (_, value)) in shares.iter().zip(remembered()) {
        sums.iter_mut().zip(value).for_each(|(sum, value)| *sum += share * value);
    }
    sums.into_iter().map(|sum| sum / total).collect()
}
