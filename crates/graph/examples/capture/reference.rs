//! The reference in plain Rust: the kernels' operations in the same order, so that the results are
//! equal to the bit.

use super::layer::{Layer, Linear, Norm};
use super::program::BLOCK;
use super::task::Task;

/// The rows of a prompt after `steps` steps through all layers.
pub(crate) fn run(task: Task, layers: &[Layer<Vec<f32>>], prompt: &[f32], steps: usize) -> Vec<f32> {
    let mut rows = prompt.to_vec();
    for layer in (0..steps).flat_map(|_| layers) {
        block(task, layer, &mut rows);
    }
    rows
}

fn block(task: Task, layer: &Layer<Vec<f32>>, rows: &mut [f32]) {
    let [before_attention, before_hidden] = &layer.norms;
    let normed = norm(task, before_attention, rows);
    let [query, key, value] =
        [&layer.query, &layer.key, &layer.value].map(|part| linear(task, part, &normed));
    let attended = linear(task, &layer.out, &attention(task, &query, &key, &value));
    add(&attended, rows);
    let hidden = linear(task, &layer.up, &norm(task, before_hidden, rows));
    let hidden: Vec<f32> = hidden.into_iter().map(gelu).collect();
    add(&linear(task, &layer.down, &hidden), rows);
}

fn norm(task: Task, norm: &Norm<Vec<f32>>, rows: &[f32]) -> Vec<f32> {
    let width = task.width();
    let normed = rows.chunks_exact(width).flat_map(|row| {
        let mean = sum_of_block(row.iter().copied()) / width as f32;
        let distances = row.iter().map(move |number| number - mean);
        let variance = sum_of_block(distances.clone().map(|distance| distance * distance)) / width as f32;
        let deviation = (variance + 1e-5).sqrt();
        let normal = distances.map(move |distance| distance / deviation);
        normal.zip(&norm.scale).zip(&norm.shift).map(|((normal, scale), shift)| normal * scale + shift)
    });
    normed.collect()
}

/// The sum of a block: each thread adds up its own, then halves are added.
fn sum_of_block(numbers: impl Iterator<Item = f32>) -> f32 {
    let mut sums = [0.0; BLOCK as usize];
    numbers.enumerate().for_each(|(index, number)| sums[index % BLOCK as usize] += number);
    let mut half = sums.len() / 2;
    while half > 0 {
        (0..half).for_each(|index| sums[index] += sums[index + half]);
        half /= 2;
    }
    sums[0]
}

fn linear(task: Task, part: &Linear<Vec<f32>>, rows: &[f32]) -> Vec<f32> {
    let (columns, depth) = (part.bias.len(), rows.len() / task.tokens);
    let products = rows.chunks_exact(depth).flat_map(|row| {
        let mut sums = part.bias.clone();
        for (number, weights) in row.iter().zip(part.weights.chunks_exact(columns)) {
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += number * weight);
        }
        sums
    });
    products.collect()
}

fn attention(task: Task, query: &[f32], key: &[f32], value: &[f32]) -> Vec<f32> {
    let of = |rows: &'_ [f32], token: usize, head: usize| {
        let start = token * task.width() + head * task.size;
        rows[start..start + task.size].to_vec()
    };
    let heads = (0..task.tokens).flat_map(|token| (0..task.heads).map(move |head| (token, head)));
    let attended = heads.flat_map(|(token, head)| {
        let query = of(query, token, head);
        let mut shares: Vec<f32> = (0..=token)
            .map(|other| {
                task.scale() * query.iter().zip(of(key, other, head)).fold(0.0, |sum, (a, b)| sum + a * b)
            })
            .collect();
        let largest = shares.iter().copied().fold(shares[0], f32::max);
        shares.iter_mut().for_each(|share| *share = exponential(*share - largest));
        let total = shares.iter().fold(0.0, |sum, share| sum + share);
        let mut sums = vec![0.0; task.size];
        for (other, share) in shares.iter().enumerate() {
            sums.iter_mut().zip(of(value, other, head)).for_each(|(sum, value)| *sum += share * value);
        }
        sums.into_iter().map(move |sum| sum / total)
    });
    attended.collect()
}

fn gelu(x: f32) -> f32 {
    let u = 0.797_884_6 * (x + 0.044_715 * (x * x * x));
    x / (1.0 + exponential(-2.0 * u))
}

fn add(from: &[f32], to: &mut [f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// e to the power of x, nearly.
pub(crate) fn exponential(x: f32) -> f32 {
    let x = x.clamp(-80.0, 80.0);
    let whole = (x * core::f32::consts::LOG2_E).round_ties_even();
    let rest = x - whole * core::f32::consts::LN_2;
    let factors = [0.041_666_668, 0.166_666_67, 0.5, 1.0, 1.0];
    let sum = factors.into_iter().fold(0.008_333_334, |sum, factor| sum * rest + factor);
    sum * f32::from_bits(((whole as i32 + 127) << 23) as u32)
}
