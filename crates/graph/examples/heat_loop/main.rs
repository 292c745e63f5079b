//! Heat flow on a plate until it settles. One graph has a loop on the device and everything around
//! it: waiting for the plate, copies in and out, memory for the launch alone, a report to the host.
//!
//! ```sh
//! cargo run -p cuda-graph --features svg --example heat_loop -- --driver soft --svg heat_loop.svg
//! ```

#[path = "../common/mod.rs"]
mod common;
mod program;
mod reference;

use std::process::ExitCode;

use cuda_handles::Context;

use common::Options;
use program::{HeatLoop, Result, Task};

fn main() -> ExitCode {
    common::example(run)
}

fn run(context: &Context, options: &Options) -> Result<bool> {
    let (width, height) = if options.is_soft { (48, 32) } else { (256, 128) };
    let task = Task { width, height, tolerance: 1e-3, most_rounds: 500 };
    let mut program =
        HeatLoop::new(context, task, |number| println!("  the host hears of the end of launch {number}"))?;
    common::show(program.graph(), options)?;
    println!(
        "plate   {width} x {height}, settled at {:e}, at most {} rounds of two steps",
        task.tolerance, task.most_rounds
    );
    let mut is_good = true;
    for heat in [1.0, 100.0, 0.0] {
        let plate = reference::hot_edge(task, heat);
        let found = program.run(&plate)?;
        let expected = reference::run(task, &plate);
        let difference = largest_difference(&found.plate, &expected.plate);
        println!(
            "an edge of {heat:3}: {:3} rounds, residual {:.3e}, {:.1?}; largest difference from the reference {difference}",
            found.rounds,
            found.residual,
            program.duration()?,
        );
        is_good &= found == expected;
    }
    Ok(is_good)
}

fn largest_difference(first: &[f32], second: &[f32]) -> f32 {
    first.iter().zip(second).map(|(first, second)| (first - second).abs()).fold(0.0, f32::max)
}
