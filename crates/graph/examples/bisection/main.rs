//! The root of a monotone function by bisection: an if-else node within a while node, and an if
//! node behind it. Kernels of the program set the conditions.
//!
//! ```sh
//! cargo run -p cuda-graph --features svg --example bisection -- --driver soft --svg bisection.svg
//! ```

#[path = "../common/mod.rs"]
mod common;
mod program;
mod reference;

use std::process::ExitCode;

use cuda_handles::Context;

use common::Options;
use program::{Bisection, Problem, Result};

fn main() -> ExitCode {
    common::example(run)
}

fn run(context: &Context, options: &Options) -> Result<bool> {
    let mut program = Bisection::new(context)?;
    common::show(program.graph(), options)?;
    let problem = Problem { level: 10.0, low: 0.0, high: 8.0, tolerance: 1e-12, accuracy: 1e-9 };
    let problems = [
        problem,
        // The interval stays too wide, so the root is polished.
        Problem { tolerance: 0.01, ..problem },
        Problem { level: -3.5, low: -100.0, ..problem },
        // The root is hit at once; and an interval that is narrow from the start.
        Problem { low: 2.0, high: 2.0, ..problem },
        Problem { low: 1.9, high: 2.2, tolerance: 0.5, ..problem },
    ];
    let mut is_good = true;
    for problem in problems {
        let (found, expected) = (program.run(problem)?, reference::run(problem));
        let Problem { level, low, high, tolerance, .. } = problem;
        println!(
            "x^3 + x = {level:4}, x in [{low:4}, {high:3}] to {tolerance:5e}: {:2} rounds, {}, x = {:.12}, missed by {:6.0e}; difference from the reference {}",
            found.rounds,
            if found.steps == 0 { "not polished" } else { "polished    " },
            found.root,
            reference::function(found.root, level).abs(),
            (found.root - expected.root).abs(),
        );
        is_good &= found == expected;
    }
    Ok(is_good)
}
