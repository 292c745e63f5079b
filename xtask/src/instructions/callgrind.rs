//! Callgrind, which counts the instructions that a program runs: the same each time, whatever else
//! the machine does.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Operations of each of the two rounds. The first warms up, and the clock's own instructions are
/// shared by all.
const COUNT: u32 = 1000;

/// What valgrind says of its version; `None` if there is none.
pub(super) fn version() -> Option<String> {
    let output = Command::new("valgrind").arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The instructions of one operation of the benchmark, on the driver that does nothing.
pub(super) fn count(bench: &Path, operation: &str, folder: &Path) -> Result<f64> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    run(bench, operation, folder)?;
    let sections = sections(folder)?;
    ensure!(
        !sections.is_empty() && sections.len() % 2 == 0,
        "callgrind counted {} sections of {operation:?}, but two equal rounds were asked for; are \
         start_clock and read_clock of the benchmark still functions of their own?",
        sections.len()
    );
    let second = sections.get(sections.len() / 2..).unwrap_or_default();
    Ok(second.iter().sum::<u64>() as f64 / f64::from(COUNT))
}

/// Counts begin when the benchmark starts its clock, and end when it reads it.
fn run(bench: &Path, operation: &str, folder: &Path) -> Result<()> {
    let mut command = Command::new("valgrind");
    command.args([
        "--tool=callgrind",
        "--quiet",
        "--separate-threads=yes",
        // Callgrind confuses two patterns that begin alike, so these are whole names.
        "--zero-before=cuda_tests_bench::measure::start_clock",
        "--dump-before=cuda_tests_bench::measure::read_clock",
    ]);
    let mut out = std::ffi::OsString::from("--callgrind-out-file=");
    out.push(folder.join("out"));
    command.arg(out).arg(bench).args(["--driver", "null", "--twice", operation, "--count"]);
    command.arg(COUNT.to_string()).env_clear().stdout(Stdio::null());
    let status = command.status().context("valgrind does not start")?;
    ensure!(status.success(), "valgrind ended with {status} for {operation:?}");
    Ok(())
}

/// The counts of the main thread between start and end of the clock, in the order of time. The
/// names of their files are `out.1-01`, `out.2-01` and so on.
fn sections(folder: &Path) -> Result<Vec<u64>> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.strip_prefix("out.").and_then(|rest| rest.strip_suffix("-01"));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            found.push((number, path));
        }
    }
    found.sort();
    // The last one is of the end of the program.
    found.iter().filter_map(|(_, path)| section(path).transpose()).collect()
}

/// The instructions of a file; `None` if it was not written when the clock was read.
fn section(path: &Path) -> Result<Option<u64>> {
    let text = std::fs::read_to_string(path)?;
    if !text.lines().any(|line| line.starts_with("desc: Trigger:") && line.contains("read_clock")) {
        return Ok(None);
    }
    let line = text.lines().find_map(|line| line.strip_prefix("summary:").or(line.strip_prefix("totals:")));
    let line = line.with_context(|| format!("{} has no count", path.display()))?;
    Ok(Some(line.trim().parse().with_context(|| format!("{} counts {line}", path.display()))?))
}
