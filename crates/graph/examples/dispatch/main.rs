//! A machine that takes its instructions from memory: a switch node with several kernels in each
//! branch. An instruction without a branch does nothing.
//!
//! ```sh
//! cargo run -p cuda-graph --features svg --example dispatch -- --driver soft --svg dispatch.svg
//! ```

#[path = "../common/mod.rs"]
mod common;
mod program;
mod reference;

use std::process::ExitCode;

use cuda_handles::Context;

use common::Options;
use program::{Dispatch, NAMES, Result};

fn main() -> ExitCode {
    common::example(run)
}

fn run(context: &Context, options: &Options) -> Result<bool> {
    let n = if options.is_soft { 1000 } else { 100_000 };
    let instructions = [0, 1, 2, 4, 3, 1, u32::MAX, 2, 3];
    let mut program = Dispatch::new(context, n, instructions.len())?;
    common::show(program.graph(), options)?;
    println!("{n} numbers, with what goes beyond 32 bits cut off");
    program.load(&instructions)?;
    let mut expected = vec![0; n];
    let mut is_good = true;
    // One launch more than there are instructions: it finds none and does nothing.
    for instruction in instructions.map(Some).into_iter().chain([None]) {
        program.launch()?;
        let found = program.numbers()?;
        instruction.iter().for_each(|instruction| reference::run(*instruction, &mut expected));
        let differences = found.iter().zip(&expected).filter(|(found, expected)| found != expected).count();
        let number = instruction.map_or("none".to_owned(), |instruction| instruction.to_string());
        let name = instruction.and_then(|instruction| NAMES.get(instruction as usize)).unwrap_or(&"nothing");
        println!(
            "instruction {number:>10}, {name:14}: {:10?} ... {:10?}; {differences} differ from the reference",
            found.get(..3).unwrap_or_default(),
            found.last().copied().unwrap_or_default(),
        );
        is_good &= differences == 0;
    }
    Ok(is_good)
}
