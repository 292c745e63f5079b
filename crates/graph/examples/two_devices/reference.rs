//! The reference in plain Rust, on one plate: the kernel's operations in the same order, so that
//! the results are equal to the bit.

use super::program::{COEFFICIENT, Task};

/// The plate after the steps of one launch.
pub(crate) fn run(task: Task, plate: Vec<f32>) -> Vec<f32> {
    (0..task.steps()).fold(plate, |plate, _| step(task, &plate))
}

/// A cold plate with heat along its upper edge and half of its left one, past the middle row.
pub(crate) fn hot_corner(task: Task, heat: f32) -> Vec<f32> {
    let is_hot = |cell: usize| {
        cell < task.width || cell.is_multiple_of(task.width) && cell / task.width <= 3 * task.height / 4
    };
    (0..task.width * task.height).map(|cell| if is_hot(cell) { heat } else { 0.0 }).collect()
}

fn step(task: Task, plate: &[f32]) -> Vec<f32> {
    (0..plate.len()).map(|cell| next(task, plate, cell)).collect()
}

fn next(task: Task, plate: &[f32], cell: usize) -> f32 {
    let (x, y) = (cell % task.width, cell / task.width);
    if x == 0 || y == 0 || x == task.width - 1 || y == task.height - 1 {
        return plate[cell];
    }
    let sides = plate[cell - 1] + plate[cell + 1];
    let ends = plate[cell - task.width] + plate[cell + task.width];
    plate[cell] + COEFFICIENT * ((sides + ends) - 4.0 * plate[cell])
}
