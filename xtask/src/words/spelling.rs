//! Spelling, by the program `typos`, which comes out of a wheel.
//!
//! `typos` knows common misspellings and is silent about words that it does not know, so a new
//! term needs no entry. `.ci/typos.toml` has the words that it takes for misspellings.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use xtask::pypi::Wheel;

use super::files::Files;

const TYPOS: Wheel = Wheel { package: "typos", version: "1.52.0" };

const CONFIGURATION: &str = ".ci/typos.toml";

/// Prints every misspelling.
pub(super) fn check(files: &Files, target: &Path) -> Result<()> {
    let mut typos = Command::new(TYPOS.program(target, "typos")?);
    typos.args([
        "--config",
        CONFIGURATION,
        "--force-exclude",
        "--sort",
        "--format",
        "brief",
        "--file-list",
        "-",
    ]);
    typos.current_dir(files.root()).stdin(Stdio::piped());
    let mut child = typos.spawn().context("typos does not start")?;
    if let Some(mut list) = child.stdin.take() {
        for file in files.written() {
            writeln!(list, "{}", file.path)?;
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "words are misspelt; mend them, or add a word of the trade to {CONFIGURATION}");
    Ok(())
}
