//! The reference in plain Rust: the kernels' operations in the same order, so that the results are
//! equal to the bit.

use super::program::{COEFFICIENT, Outcome, Task};

pub(crate) fn run(task: Task, plate: &[f32]) -> Outcome {
    let mut plate = plate.to_vec();
    let (mut residual, mut rounds) = (change(task, &plate), 0);
    while residual > task.tolerance && rounds < task.most_rounds {
        plate = step(task, &step(task, &plate));
        residual = change(task, &plate);
        rounds += 1;
    }
    Outcome { plate, residual, rounds }
}

/// A cold plate with a hot upper edge.
pub(crate) fn hot_edge(task: Task, heat: f32) -> Vec<f32> {
    (0..task.cells()).map(|cell| if cell < task.width { heat } else { 0.0 }).collect()
}

fn step(task: Task, plate: &[f32]) -> Vec<f32> {
    (0..plate.len()).map(|cell| plate[cell] + gain(task, plate, cell)).collect()
}

fn change(task: Task, plate: &[f32]) -> f32 {
    (0..plate.len()).map(|cell| gain(task, plate, cell).abs()).fold(0.0, f32::max)
}

fn gain(task: Task, plate: &[f32], cell: usize) -> f32 {
    let (x, y) = (cell % task.width, cell / task.width);
    if x == 0 || y == 0 || x == task.width - 1 || y == task.height - 1 {
        return 0.0;
    }
    let sides = plate[cell - 1] + plate[cell + 1];
    let ends = plate[cell - task.width] + plate[cell + task.width];
    COEFFICIENT * ((sides + ends) - 4.0 * plate[cell])
}
