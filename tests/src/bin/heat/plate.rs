//! The task: a plate with a pattern of heat on it, and a hot bar that goes round.

use std::ops::Range;

/// The part of the difference to a neighbour that a cell takes in a step; stable up to a quarter.
pub(crate) const COEFFICIENT: f32 = 0.24;

/// The temperature of the bar.
pub(crate) const HOT: f32 = 1.0;

/// The number of steps between two records of a row.
const RECORD_EVERY: usize = 10;

/// A square plate and the steps of one round of the bar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) size: usize,
    pub(crate) steps: usize,
    /// How often the round is repeated.
    pub(crate) rounds: usize,
}

impl Task {
    pub(crate) fn cells(self) -> usize {
        self.size * self.size
    }

    /// Waves around the middle, which melt into each other. The border stays as it is here.
    pub(crate) fn start(self) -> Vec<f32> {
        let middle = self.size as f32 / 2.0;
        let cell = |index: usize| {
            let (x, y) = ((index % self.size) as f32 - middle, (index / self.size) as f32 - middle);
            let wave = (x.hypot(y) / self.size as f32 * 60.0).cos();
            0.25 * (1.0 + wave)
        };
        (0..self.cells()).map(cell).collect()
    }

    /// The cells of the bar in a step: an eighth of a row, on a circle of half the plate's width.
    pub(crate) fn bar(self, step: usize) -> Range<usize> {
        let angle = std::f64::consts::TAU * step as f64 / self.steps as f64;
        let (middle, radius) = (self.size as f64 / 2.0, self.size as f64 / 4.0);
        let length = self.size / 8;
        let row = (middle + radius * angle.sin()) as usize;
        let left = (middle + radius * angle.cos()) as usize - length / 2;
        let start = row * self.size + left;
        start..start + length
    }

    /// The row that is recorded; the bar never comes there.
    pub(crate) fn recorded_row(self) -> Range<usize> {
        let start = (self.size - self.size / 8) * self.size;
        start..start + self.size
    }

    /// Which record a step makes, if any.
    pub(crate) fn record(self, step: usize) -> Option<Range<usize>> {
        let number = (step + 1) / RECORD_EVERY;
        (step + 1).is_multiple_of(RECORD_EVERY).then(|| (number - 1) * self.size..number * self.size)
    }

    pub(crate) fn records(self) -> usize {
        self.steps / RECORD_EVERY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_stays_inside_and_off_the_recorded_row() {
        for size in [16, 18, 64, 100, 1024] {
            let task = Task { size, steps: 200, rounds: 1 };
            for step in 0..task.steps {
                let bar = task.bar(step);
                assert_eq!(bar.start / size, (bar.end - 1) / size, "in one row");
                assert_ne!(bar.start % size, 0, "off the left border");
                assert_ne!(bar.end % size, 0, "off the right border");
                let row = bar.start / size;
                assert!(row > 0 && row < size - 1 && row != task.recorded_row().start / size);
            }
        }
    }
}
