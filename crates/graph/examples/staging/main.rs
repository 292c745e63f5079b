//! A pipeline of three streams: rows of numbers are copied to the device, processed, and copied
//! back. While one row is processed, the next is on its way. The host never waits inside the loop:
//! it looks at the results that have arrived, and sends a row when a slot is free.
//!
//! ```sh
//! cargo run -p cuda-graph --example staging -- --driver soft
//! ```

#[path = "../common/mod.rs"]
mod common;
mod program;
mod reference;

use std::process::ExitCode;

use cuda_handles::Context;

use common::Options;
use program::{Pipeline, Result};

fn main() -> ExitCode {
    common::example(run)
}

fn run(context: &Context, options: &Options) -> Result<bool> {
    let (n, rows) = if options.is_soft { (1000, 40) } else { (1 << 20, 200) };
    let mut pipeline = Pipeline::new(context, n)?;
    if let Some(graph) = pipeline.graph() {
        common::show(&graph, options)?;
    }
    println!("{rows} rows of {n} numbers");
    let results = pipeline.run(rows)?;
    let is_right = |(row, sum): (u32, &u32)| *sum == reference::sum(n, row);
    let right = (0..rows).zip(&results).filter(|one| is_right(*one)).count();
    println!("{right} of {} results are those of the reference", results.len());
    println!("the host looked {} times and found nothing to do {} times", pipeline.looks(), pipeline.idle());
    Ok(right == results.len() && results.len() == rows as usize)
}
