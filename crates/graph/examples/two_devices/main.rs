//! Heat on a plate that lies on two devices, half on each: after each step, the halves exchange
//! their edges. All steps of both devices, and the copies between them, are one graph.
//!
//! ```sh
//! cargo run -p cuda-graph --example two_devices -- --driver soft
//! ```
//!
//! The software driver poses as two devices. With one device there is nothing to show.

#[path = "../common/mod.rs"]
mod common;
mod program;
mod reference;

use std::process::ExitCode;

use cuda_handles::{Context, Device};

use common::Options;
use program::{Result, Task, TwoDevices};

fn main() -> ExitCode {
    common::example(run)
}

fn run(context: &Context, options: &Options) -> Result<bool> {
    if Device::count()? < 2 {
        println!("there is one device");
        return Ok(true);
    }
    let other = Device::new(1)?.context()?;
    let (width, height) = if options.is_soft { (24, 16) } else { (512, 512) };
    let task = Task { width, height, rounds: 4 };
    let mut program = TwoDevices::new([context, &other], task)?;
    common::show(program.graph(), options)?;
    let report = program.graph().check()?;
    println!("check   {}", if report.is_clean() { "no races" } else { "races" });

    let plate = reference::hot_corner(task, 100.0);
    program.load(&plate)?;
    let mut expected = plate;
    for launch in 0..6 {
        // On a stream of either device: launches of one executable never overlap.
        program.launch(launch % 2)?;
        expected = reference::run(task, expected);
    }
    let found = program.plate()?;
    println!("plate   {width} x {height}, {} steps by 6 launches", 6 * task.steps());
    Ok(report.is_clean() && found == expected)
}
