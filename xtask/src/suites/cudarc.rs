//! cudarc's own library tests, from the crate as published.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use xtask::runner::{Ended, Outcome, Row, run_bounded};

use super::Place;
use crate::cargo::Cargo;

pub(super) const SUITE: &str = "cudarc";

/// The parts of cudarc that need the driver and the compiler alone.
const FEATURES: &str = "std,driver,nvrtc,f16,dynamic-loading,cuda-13000";
/// A test that runs longer is stopped.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    manifest_path: PathBuf,
}

/// A line that cargo writes about what it built.
#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
}

/// Builds the tests and runs each in a process of its own.
pub(super) fn run(cargo: &Cargo, place: &Place) -> Result<Vec<Row>> {
    let source = copy_of_source(cargo, &place.folder)?;
    let binary = build(cargo, &source)?;
    let program = || -> Result<Command> {
        let mut command = Command::new(&binary);
        command.current_dir(&source).env("LD_LIBRARY_PATH", place.libraries()?);
        Ok(command)
    };
    let mut list = program()?;
    let listed = list.args(["--list", "--format", "terse"]).output()?;
    println!("{SUITE}");
    let mut rows = Vec::new();
    for test in String::from_utf8_lossy(&listed.stdout).lines().filter_map(|line| line.strip_suffix(": test"))
    {
        let mut command = program()?;
        command.args(["--exact", test]);
        let ended = run_bounded(command, LIMIT)?;
        rows.push(row(test, ended));
    }
    ensure!(!rows.is_empty(), "cudarc's test binary lists no test");
    Ok(rows)
}

fn row(test: &str, ended: Ended) -> Row {
    let outcome = if ended.output.contains("test result: ok. 0 passed; 0 failed; 1 ignored") {
        Outcome::Skipped { reason: "marked as ignored".to_owned() }
    } else {
        Outcome::of(test, &ended, LIMIT)
    };
    let seconds = ended.time.as_secs_f64();
    Row { suite: SUITE.into(), test: test.into(), outcome, seconds, output: ended.output, flaky: None }
}

/// Copies the crate from cargo's registry, since a dependency's tests cannot be built in place.
fn copy_of_source(cargo: &Cargo, folder: &Path) -> Result<PathBuf> {
    let output = cargo.command().args(["metadata", "--format-version", "1"]).output()?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo gives no metadata")?;
    let package = metadata.packages.iter().find(|package| package.name == SUITE);
    let package = package.context("the workspace has no dependency cudarc")?;
    let copy = folder.join(format!("{SUITE}-{}", package.version));
    let manifest = copy.join("Cargo.toml");
    if !manifest.exists() {
        copy_folder(package.manifest_path.parent().context("a manifest without a folder")?, &copy)?;
        // Without a table of its own it would belong to this workspace, which it lies in.
        let text = std::fs::read_to_string(&package.manifest_path)?;
        std::fs::write(&manifest, format!("{text}\n[workspace]\n"))?;
    }
    Ok(copy)
}

/// The manifest is left to the caller; while it is absent the copy is not complete.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if entry.file_name() != "Cargo.toml" {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn build(cargo: &Cargo, source: &Path) -> Result<PathBuf> {
    let mut command = cargo.command();
    command.current_dir(source).args(["test", "--lib", "--no-run", "--quiet", "--no-default-features"]);
    command.args(["--features", FEATURES, "--message-format", "json-render-diagnostics"]);
    // The warnings of another project are not of interest.
    command.env("CARGO_TARGET_DIR", source.join("target")).env("RUSTFLAGS", "--cap-lints=allow");
    command.stderr(std::process::Stdio::inherit());
    let output = command.output()?;
    ensure!(output.status.success(), "the tests of cudarc cannot be built");
    let artifacts = String::from_utf8_lossy(&output.stdout);
    let executable = artifacts
        .lines()
        .filter_map(|line| serde_json::from_str::<Artifact>(line).ok()?.executable)
        .next_back();
    executable.context("cargo names no test binary of cudarc")
}
