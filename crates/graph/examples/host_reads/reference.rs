//! The reference in plain Rust: the kernel's operations in the same order, so that the results are
//! equal to the bit.

use super::program::{COEFFICIENT, Reading, Task};

pub(crate) fn run(task: Task, replays: usize) -> Vec<Reading> {
    let (mut plate, mut heater) = (vec![0.0; task.cells()], task.decide(0.0));
    let mut replay = || {
        plate[..task.width].fill(heater);
        for _ in 0..2 * task.rounds {
            plate = step(task, &plate);
        }
        let sensor = plate[task.sensor()];
        heater = task.decide(sensor);
        Reading { sensor, heater }
    };
    (0..replays).map(|_| replay()).collect()
}

fn step(task: Task, plate: &[f32]) -> Vec<f32> {
    (0..plate.len()).map(|cell| plate[cell] + gain(task, plate, cell)).collect()
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
