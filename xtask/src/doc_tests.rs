//! The examples in the documentation, which only cargo can run.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use xtask::runner::{Outcome, Row};

use crate::cargo::Cargo;
use crate::kernels;

/// One row for each example.
pub(crate) fn run(cargo: &Cargo) -> Result<Vec<Row>> {
    let start = Instant::now();
    let mut command = cargo.command();
    // The guide compiles CUDA C++, where there is a compiler.
    if let Ok(compiler) = kernels::oldest_compiler(&cargo.target()) {
        command.env("CUDA_NVRTC", compiler);
    }
    let mut child = command
        .args(["test", "--doc", "--workspace", "--exclude", "xtask", "--all-features", "--no-fail-fast"])
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo does not start")?;
    let mut rows = Vec::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line?;
            println!("{line}");
            rows.extend(row(&line));
        }
    }
    let status = child.wait()?;
    let failed = rows.iter().any(|row| matches!(row.outcome, Outcome::Failed { .. }));
    ensure!(status.success() || failed, "the examples of the documentation do not build");
    if let Some(first) = rows.first_mut() {
        // rustdoc reports no times, so the first row shows the time of all.
        first.seconds = start.elapsed().as_secs_f64();
    }
    Ok(rows)
}

/// `test crates/sys/src/load.rs - load::Loader (line 82) - compile ... ok`
fn row(line: &str) -> Option<Row> {
    let (test, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let outcome = match result {
        "ok" => Outcome::Passed,
        "FAILED" => Outcome::Failed { reason: "its output is above".to_owned() },
        _ => Outcome::Skipped { reason: "an example that is marked as ignored".to_owned() },
    };
    Some(Row {
        suite: "examples".to_owned(),
        test: test.to_owned(),
        outcome,
        seconds: 0.0,
        output: String::new(),
        flaky: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_told_from_other_lines() {
        let found = row("test crates/sys/src/load.rs - load::Loader (line 82) - compile ... ok");
        assert_eq!(found.map(|row| row.outcome), Some(Outcome::Passed));
        assert!(row("test result: ok. 3 passed; 0 failed; 0 ignored").is_none());
    }
}
