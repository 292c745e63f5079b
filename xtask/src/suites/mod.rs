//! `cargo xtask suites`: runs the tests of other projects on the software driver, built as a
//! library.
//!
//! The tests are not part of this repository: they come with cudarc's crate, and from a checkout of
//! cuda-python. [`expected`] lists the tests that are known to fail, with the reasons.

mod cudarc;
mod expected;
mod pytest;
mod python;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use xtask::runner::Row;

use crate::cargo::Cargo;
use crate::{kernels, soft_lib};
use expected::Expected;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only the parts with this text in their name, such as cudarc, cuda-core or test_memory
    #[arg(long, value_name = "SUBSTRING")]
    filter: Option<String>,
    /// A checkout of cuda-python with the folders of tests [default: the released tests, by git]
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// Write the outcome of every test to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Options {
    fn selects(&self, part: &str) -> bool {
        self.filter.as_deref().is_none_or(|text| part.contains(text))
    }
}

/// Where the driver is, and where suites keep their files.
struct Place {
    /// Below the target folder.
    folder: PathBuf,
    /// The folder with the driver's library.
    driver: PathBuf,
    /// The library of NVIDIA's compiler.
    nvrtc: PathBuf,
}

impl Place {
    fn prepare(cargo: &Cargo) -> Result<Self> {
        let folder = std::path::absolute(cargo.target())?.join("suites");
        let driver = folder.join("driver");
        soft_lib::build(cargo, false, &driver)?;
        Ok(Self { driver, nvrtc: kernels::newest_compiler(&cargo.root().join("target"))?, folder })
    }

    /// The folders in which programs look for the driver and the compiler.
    fn libraries(&self) -> Result<std::ffi::OsString> {
        let compiler = self.nvrtc.parent().unwrap_or(Path::new("."));
        Ok(std::env::join_paths([self.driver.as_path(), compiler])?)
    }
}

/// Runs the parts that `options` select, prints a table, and gives the exit code: 1 if a test
/// failed that is expected to pass, or an expected failure did not happen.
pub(crate) fn run(cargo: &Cargo, options: &Options) -> Result<u8> {
    let place = Place::prepare(cargo)?;
    let mut rows = Vec::new();
    if options.selects(cudarc::SUITE) {
        rows.extend(cudarc::run(cargo, &place)?);
    }
    for suite in &python::SUITES {
        rows.extend(python::run(suite, &place, options)?);
    }
    ensure!(!rows.is_empty(), "no part has such a name");
    if let Some(path) = &options.report {
        std::fs::write(path, serde_json::to_string_pretty(&rows)?)?;
    }
    let expected = Expected::read()?;
    let good = table::print(&rows, &expected);
    Ok(u8::from(!good))
}

/// The part of a suite that a test belongs to: its file or module.
fn part(row: &Row) -> &str {
    row.test.split_once("::").map_or(row.test.as_str(), |(part, _)| part)
}
