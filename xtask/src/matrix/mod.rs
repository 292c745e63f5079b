//! `test-gpu`: the tests on a GPU, in a matrix of rows that differ in driver, device and other
//! axes.
//!
//! The matrix is declared in a TOML file. A run first looks at the machine, before anything is
//! built; then it expands the declaration into rows, runs their tests, and reports.

mod axes;
mod condition;
mod declaration;
mod expand;
mod list;
mod lock;
mod options;
mod origin;
mod private;
mod progress;
mod report;
mod run;

use declaration::Declaration;
pub use declaration::FILE;
pub use lock::FolderLock;
pub use options::MatrixOptions;
use report::Earlier;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use cuda_nvrtc::internal::Process;

use crate::detect::Machine;
use crate::runner::Suite;

/// The exit code of a run whose time was up before all tests had run. A wrong command line has 2.
const UNFINISHED: u8 = 3;
/// The exit code of a run that is impossible here: no driver, or no device.
const IMPOSSIBLE: u8 = 4;

/// Runs the matrix and returns the exit code. `suite` gives the test binaries, which may build
/// them; `default` is the declaration if the command line names no other.
///
/// # Errors
/// The declaration is wrong, there is no such row or device, the tests do not build, or a report
/// cannot be written.
pub fn run(options: &MatrixOptions, default: &Path, suite: impl FnOnce() -> Result<Suite>) -> Result<u8> {
    let declaration = Declaration::read(options.matrix.as_deref().unwrap_or(default))?;
    let mut machine = Machine::detect(&options.driver, &Process);
    if let Some(named) = &options.nvrtc {
        machine.name_library("NVRTC", named);
    }
    print!("{machine}");
    let refusal = machine.refusal();
    if let (Some(refusal), false) = (&refusal, options.list) {
        eprintln!("error: no test can run here: {refusal}");
        return Ok(IMPOSSIBLE);
    }
    if let Some(device) = options.device {
        let count = machine.driver().devices.len();
        ensure!(device < count || refusal.is_some(), "there is no device {device}; there are {count}");
    }
    let rows = expand::rows(&declaration, &machine, &options.selection())?;
    if options.list {
        list::print(&rows);
        refusal.iter().for_each(|refusal| println!("\nno test can run here: {refusal}"));
        return Ok(0);
    }
    // A folder that cannot be written is known before anything is built, and so is a report that
    // cannot be gone on with.
    if let Some(folder) = &options.report_dir {
        std::fs::create_dir_all(folder).with_context(|| format!("no folder {}", folder.display()))?;
    }
    let earlier = Earlier::read(options)?;
    let report = run::all(&suite()?, &declaration, machine, &rows, earlier, options)?;
    report::print(&report);
    let verdict = report.verdict();
    println!("\n{}", verdict.words);
    Ok(verdict.code)
}

#[cfg(test)]
mod tests;
