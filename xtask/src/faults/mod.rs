//! `cargo xtask faults`: the fault sweeps in full, and a table of the public functions that they
//! sweep.
//!
//! The harness notes the lines in which each injected failure happens ([`notes`]). The functions
//! around them are read from the sources: public ones whose documentation names driver calls
//! ([`sources`]).

mod notes;
mod sources;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use xtask::runner::{self, TestOptions};

use crate::build::Build;
use crate::cargo::Cargo;
use notes::Notes;
use sources::Function;

/// A sweep in full makes each two calls of a scenario fail.
const SECONDS: u64 = 3600;

/// The memory of the software driver's devices. What a free that fails leaves behind would fill a
/// smaller one.
const MEMORY: u64 = 1 << 40;

/// Runs the sweeps with these options, and returns the exit code.
pub(crate) fn run(cargo: &Cargo, mut options: TestOptions) -> Result<u8> {
    let tests = sources::sweeps(cargo.root())?;
    ensure!(!tests.is_empty(), "no test sweeps");
    options.filter = match options.filter.as_slice() {
        [] => tests,
        texts => tests.into_iter().filter(|test| texts.iter().any(|text| test.contains(text))).collect(),
    };
    ensure!(!options.filter.is_empty(), "no sweep has that text in its name");
    options.timeout = options.timeout.max(SECONDS);
    let folder = cargo.target().join("faults");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    options.variables = vec![
        ("CUDA_TESTS_FAULTS", "full".into()),
        ("CUDA_SOFT_MEMORY", MEMORY.to_string().into()),
        ("CUDA_TESTS_SWEPT", std::path::absolute(&folder)?.into_os_string()),
    ];
    let suite = Build { asan: false, gpu: false, bundle: None }.suite(cargo)?;
    let report = runner::test(&suite, &options)?;
    print(&sources::functions(cargo.root())?, &Notes::read(&folder)?);
    if let Some(path) = &options.report {
        report.write(path)?;
    }
    report.print();
    Ok(u8::from(!report.is_good()))
}

/// Prints each function with the number of driver calls that failed in it.
fn print(functions: &[Function], notes: &Notes) {
    let mut swept = 0;
    let mut crates: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    println!("\n{:60} driver calls that failed in it", "public function");
    for function in functions {
        let calls = notes.calls_in(function);
        let row = crates.entry(&function.library).or_default();
        row.0 += 1;
        if calls > 0 {
            swept += 1;
            row.1 += 1;
        }
        let count = if calls > 0 { calls.to_string() } else { "none".to_owned() };
        println!("{:60} {count}", function.to_string());
    }
    for (library, (all, swept)) in crates {
        println!("{library}: {swept} of {all}");
    }
    println!("{swept} of {} public functions that name driver calls are swept", functions.len());
}
