//! The reference in plain Rust: the kernels' operations in the same order, so that the results are
//! equal to the bit.

use super::program::{Outcome, Problem};

pub(crate) fn run(problem: Problem) -> Outcome {
    let Problem { level, mut low, mut high, tolerance, accuracy } = problem;
    let (mut rounds, mut steps) = (0, 0);
    let mut goes_on = high - low > tolerance;
    while goes_on {
        let middle = middle_of(low, high);
        if function(middle, level) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
        rounds += 1;
        let middle = middle_of(low, high);
        goes_on = low < middle && middle < high && high - low > tolerance;
    }
    let mut root = middle_of(low, high);
    if function(root, level).abs() > accuracy {
        while steps < 3 {
            root -= function(root, level) / (3.0 * (root * root) + 1.0);
            steps += 1;
        }
    }
    Outcome { root, rounds, steps }
}

/// The distance of the function from its level.
pub(crate) fn function(x: f64, level: f64) -> f64 {
    x * x * x + x - level
}

fn middle_of(low: f64, high: f64) -> f64 {
    low + 0.5 * (high - low)
}
