//! `cargo xtask instructions`: counts the instructions of the hot paths and compares them with
//! recorded ceilings.
//!
//! The operations are those of the benchmark, by the names of its rows, in the same program.

mod callgrind;
mod ceilings;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::build;
use crate::cargo::Cargo;
use ceilings::Count;

/// Rows of the benchmark.
const OPERATIONS: [&str; 17] = [
    "launch, built per call",
    "launch, reused borrowing holder",
    "launch, reused owning holder",
    "launch of a typed kernel",
    "captured launch, kept arguments",
    "captured fill",
    "graph launch",
    "kernel node, four kept arguments",
    "8 nodes, unchanged",
    "8 nodes, one buffer set",
    "8 nodes, all buffers set",
    "8 nodes through a cache, unchanged",
    "8 nodes through a cache, all buffers set",
    "buffer of zeros",
    "drop of a buffer",
    "fill",
    "event record",
];

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write what is counted as the new ceilings
    #[arg(long)]
    record: bool,
}

/// How a check ended that did not fail.
pub(crate) enum Checked {
    Passed(String),
    Skipped(String),
}

pub(crate) fn run(cargo: &Cargo, options: &Options) -> Result<()> {
    if options.record {
        return record(cargo);
    }
    match check(cargo)? {
        Checked::Passed(note) => println!("{note}"),
        Checked::Skipped(reason) => println!("skipped: {reason}"),
    }
    Ok(())
}

/// Counts, and fails if an operation is above its ceiling.
pub(crate) fn check(cargo: &Cargo) -> Result<Checked> {
    if let Some(reason) = obstacle() {
        return Ok(Checked::Skipped(reason));
    }
    let recorded = ceilings::read(&file(cargo))?;
    let (mut above, mut below) = (Vec::new(), 0);
    println!("{:44} {:>9} {:>9} {:>9}", "instructions of an operation", "recorded", "now", "change");
    for found in count(cargo)? {
        let Count { operation, instructions } = &found;
        let Some(before) = recorded.iter().find(|count| count.operation == *operation) else {
            bail!("{operation:?} has no ceiling; `cargo xtask instructions --record` records it");
        };
        let before = before.instructions;
        println!(
            "{operation:44} {before:9.0} {instructions:9.0} {:+8.1} %",
            (instructions / before - 1.0) * 100.0
        );
        if ceilings::is_above(*instructions, before) {
            above.push(format!(
                "{operation:?} takes {instructions:.0} instructions, recorded are {before:.0}"
            ));
        }
        below += usize::from(ceilings::is_far_below(*instructions, before));
    }
    if !above.is_empty() {
        bail!("{}; if that is worth it, `cargo xtask instructions --record` records it", above.join("; "));
    }
    let hint = if below > 0 { format!(", {below} far below: record anew") } else { String::new() };
    Ok(Checked::Passed(format!("{} operations{hint}", OPERATIONS.len())))
}

fn record(cargo: &Cargo) -> Result<()> {
    if let Some(reason) = obstacle() {
        bail!("{reason}");
    }
    let counts = count(cargo)?;
    for count in &counts {
        println!("{:44} {:9.0}", count.operation, count.instructions);
    }
    ceilings::write(&file(cargo), &counts)
}

/// Why nothing can be counted here.
fn obstacle() -> Option<String> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Some("the ceilings are of x86-64 and Linux".to_owned());
    }
    match callgrind::version() {
        None => Some("there is no valgrind here; the package valgrind of the system brings it".to_owned()),
        Some(_) => None,
    }
}

fn count(cargo: &Cargo) -> Result<Vec<Count>> {
    let (bench, folder) = (build::counted_bench(cargo)?, cargo.target().join("callgrind"));
    let count = |operation: &&str| {
        let instructions = callgrind::count(&bench, operation, &folder)?;
        Ok(Count { operation: (*operation).to_owned(), instructions })
    };
    OPERATIONS.iter().map(count).collect()
}

fn file(cargo: &Cargo) -> PathBuf {
    cargo.root().join("tests/bench/instructions.txt")
}
