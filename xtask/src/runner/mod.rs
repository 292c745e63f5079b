//! The runner: every test in a process of its own.
//!
//! A process has one driver, and tests that count calls or make them fail would disturb each other,
//! so no two tests share a process. The runner needs the test binaries but not Rust, so the bundle
//! takes it to machines that only have a GPU.

mod bench;
mod driver;
pub(crate) mod options;
mod outcome;
mod output;
mod process;
pub(crate) mod progress;
mod report;
pub(crate) mod schedule;
pub(crate) mod suite;
pub(crate) mod wrapper;

pub use bench::{Bench, BenchOptions, Peers};
pub use driver::Driver;
pub use options::{DemoOptions, TestOptions};
pub use outcome::Outcome;
pub use process::{Ended, run as run_bounded};
pub use report::{Report, Row};
pub use suite::{Binary, Suite};

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Runs the tests that `options` select, and prints a line for each, and the output of failures.
///
/// # Errors
/// There is no such driver, or a test binary does not start or does not list its tests.
pub fn test(suite: &Suite, options: &TestOptions) -> Result<Report> {
    let tests = suite.list(&options.filter)?;
    let (driver, devices) = suite.describe(&options.driver, options.environment())?;
    println!("driver: {driver}");
    devices.iter().for_each(|device| println!("{device}"));
    let progress = progress::Progress::new(tests.len());
    let tests: Vec<_> = tests.iter().collect();
    let rows =
        schedule::run(&tests, &options.settings(), &|row| progress.ended(row), &|row| progress.again(row));
    progress.finish();
    Ok(Report { driver, devices, rows })
}

/// Runs the demo and gives its exit code.
///
/// # Errors
/// The program does not start.
pub fn demo(program: &Path, out: &Path, options: &DemoOptions) -> Result<u8> {
    let mut command = Command::new(program);
    command.arg("--driver").arg(options.driver.argument()).arg("--out").arg(out);
    for (name, value) in [("--size", options.size), ("--steps", options.steps)] {
        if let Some(value) = value {
            command.arg(name).arg(value.to_string());
        }
    }
    let status = command.status().with_context(|| format!("{} does not start", program.display()))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
