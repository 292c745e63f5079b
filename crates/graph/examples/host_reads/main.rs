//! A thermostat: heat flows on a plate, and at the end of each launch a host function reads one
//! cell and decides how hot the heater is in the next launch. The function reads and writes pinned
//! memory of the graph. The program enqueues all launches and waits once.
//!
//! ```sh
//! cargo run -p cuda-graph --features svg --example host_reads -- \
//!     --driver soft --svg host_reads.svg
//! ```

#[path = "../common/mod.rs"]
mod common;
mod program;
mod reference;

use std::process::ExitCode;

use cuda_handles::Context;

use common::Options;
use program::{Reading, Result, Task, Thermostat};

fn main() -> ExitCode {
    common::example(run)
}

fn run(context: &Context, options: &Options) -> Result<bool> {
    let size = if options.is_soft { 24 } else { 128 };
    let task = Task { width: size, height: size, rounds: 10, goal: 20.0, hot: 80.0 };
    let replays = if options.is_soft { 60 } else { 500 };
    let mut program = Thermostat::new(context, task, move |number, reading| {
        if number % (replays / 10) == 0 {
            let Reading { sensor, heater } = reading;
            println!(
                "after replay {number:4} the cell has {sensor:7.3} degrees; the heater goes to {heater}"
            );
        }
    })?;
    common::show(program.graph(), options)?;
    let found = program.run(replays)?;
    let switched = found.windows(2).filter(|pair| pair[0].heater != pair[1].heater).count();
    println!("the host function switched the heater {switched} times");
    Ok(found == reference::run(task, replays) && switched > 0)
}
