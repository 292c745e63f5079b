//! The reference in plain Rust: the kernel's operations in the kernel's order.

use crate::plate::{COEFFICIENT, HOT, Task};

/// The results of a run, on a device or here.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) plate: Vec<f32>,
    /// The recorded rows of the last round.
    pub(crate) records: Vec<f32>,
    /// The largest change of a cell in the last step.
    pub(crate) change: f32,
}

/// Runs the task; `after_round` is called for each round done.
pub(crate) fn run(task: Task, after_round: impl Fn()) -> State {
    let mut plate = task.start();
    let mut next = plate.clone();
    let mut records = vec![0.0; task.records() * task.size];
    for _ in 0..task.rounds {
        for step in 0..task.steps {
            plate[task.bar(step)].fill(HOT);
            advance(task.size, &plate, &mut next);
            if let Some(record) = task.record(step) {
                records[record].copy_from_slice(&next[task.recorded_row()]);
            }
            std::mem::swap(&mut plate, &mut next);
        }
        after_round();
    }
    let change = largest_difference(&plate, &next);
    State { plate, records, change }
}

fn advance(size: usize, from: &[f32], to: &mut [f32]) {
    let rows = from.windows(3 * size).step_by(size).zip(to.chunks_exact_mut(size).skip(1));
    for (three, out) in rows {
        let (above, rest) = three.split_at(size);
        let (here, below) = rest.split_at(size);
        for x in 1..size - 1 {
            let sides = here[x - 1] + here[x + 1];
            let ends = above[x] + below[x];
            let flow = (sides + ends) - 4.0 * here[x];
            out[x] = here[x] + COEFFICIENT * flow;
        }
    }
}

pub(crate) fn largest_difference(first: &[f32], second: &[f32]) -> f32 {
    first.iter().zip(second).map(|(first, second)| (first - second).abs()).fold(0.0, larger)
}

/// Unlike `f32::max`, this keeps a NaN.
fn larger(one: f32, other: f32) -> f32 {
    if one >= other || one.is_nan() { one } else { other }
}
