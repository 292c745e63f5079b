//! Made-up samples, and the training in plain Rust: the kernels' operations in the same order, so
//! that the results are equal to the bit.

use super::program::{Samples, Task};

/// Numbers between -1 and 1, by a generator of which 32 bits are enough.
pub(crate) fn numbers(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The samples of so many shares: what a network of the same form, with other parameters, puts out.
pub(crate) fn samples(task: Task, shares: usize) -> Vec<Samples> {
    let teacher = numbers(7, task.parameters());
    let share = |number: usize| {
        let x = numbers(100 + number as u32, task.samples * task.inputs);
        let outputs = units(task, &x, &teacher);
        let targets = errors(task, &outputs, &teacher, &vec![0.0; task.samples]);
        Samples { x, targets }
    };
    (0..shares).map(share).collect()
}

/// The parameters after so many steps.
pub(crate) fn train(task: Task, samples: &[Samples], mut parameters: Vec<f32>, steps: usize) -> Vec<f32> {
    for _ in 0..steps {
        let of_shares = samples.iter().map(|samples| gradients(task, samples, &parameters));
        let total =
            of_shares.reduce(|sum, share| sum.iter().zip(share).map(|(sum, more)| sum + more).collect());
        for (parameter, gradient) in parameters.iter_mut().zip(total.unwrap_or_default()) {
            *parameter -= task.rate * gradient;
        }
    }
    parameters
}

fn units(task: Task, x: &[f32], parameters: &[f32]) -> Vec<f32> {
    let Task { inputs, units, .. } = task;
    let output = |x: &[f32], unit: usize| {
        let weights = &parameters[unit * inputs..(unit + 1) * inputs];
        let sum = weights.iter().zip(x).fold(parameters[units * inputs + unit], |sum, (w, x)| sum + w * x);
        if sum > 0.0 { sum } else { 0.0 }
    };
    x.chunks(inputs).flat_map(|x| (0..units).map(move |unit| output(x, unit))).collect()
}

fn errors(task: Task, outputs: &[f32], parameters: &[f32], targets: &[f32]) -> Vec<f32> {
    let last = &parameters[task.units * task.inputs + task.units..];
    let error = |(outputs, target): (&[f32], &f32)| {
        outputs.iter().zip(last).fold(last[task.units], |sum, (output, w)| sum + w * output) - target
    };
    outputs.chunks(task.units).zip(targets).map(error).collect()
}

fn gradients(task: Task, samples: &Samples, parameters: &[f32]) -> Vec<f32> {
    let Task { inputs, units: count, .. } = task;
    let outputs = units(task, &samples.x, parameters);
    let errors = errors(task, &outputs, parameters, &samples.targets);
    let (offsets, last) = (count * inputs, count * inputs + count);
    let term = |place: usize, sample: usize| {
        let (error, output) = (errors[sample], |unit: usize| outputs[sample * count + unit]);
        let behind = |unit: usize| if output(unit) > 0.0 { error * parameters[last + unit] } else { 0.0 };
        match place {
            _ if place < offsets => behind(place / inputs) * samples.x[sample * inputs + place % inputs],
            _ if place < last => behind(place - offsets),
            _ if place < last + count => error * output(place - last),
            _ => error,
        }
    };
    let sum = |place: usize| (0..task.samples).fold(0.0, |sum, sample| sum + term(place, sample));
    (0..task.parameters()).map(sum).collect()
}
