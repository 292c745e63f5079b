//! Running a file of Python tests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Deserialize;
use xtask::runner::{Outcome, Row, run_bounded};

use super::python::Suite;

/// A test that runs longer ends its process.
const LIMIT: &str = "faulthandler_timeout=120";
/// A file that runs longer is stopped.
const LIMIT_OF_FILE: Duration = Duration::from_secs(1800);

/// The exit code of a process whose device is lost.
const LOST: i32 = 86;

/// Everything that is the same for all files of a suite.
pub(super) struct Runner {
    pub(super) python: PathBuf,
    /// The folder with the plugins.
    pub(super) plugins: PathBuf,
    /// Where the driver and the compiler are.
    pub(super) libraries: OsString,
    /// The file into which a plugin writes.
    pub(super) outcomes: PathBuf,
    pub(super) tests: PathBuf,
}

/// A line that the plugin writes.
#[derive(Deserialize)]
struct Line {
    test: String,
    outcome: Option<String>,
    #[serde(default)]
    reason: String,
}

impl Runner {
    /// Runs a file in a process of its own. If a test ends the process or loses the device, the
    /// others go on in another.
    pub(super) fn run(&self, suite: &Suite, file: &str) -> Result<Vec<Row>> {
        if self.outcomes.exists() {
            std::fs::remove_file(&self.outcomes)?;
        }
        let mut deaths = BTreeMap::new();
        loop {
            let ended = run_bounded(self.command(suite, file), LIMIT_OF_FILE)?;
            let code = ended.status.and_then(|status| status.code());
            if code == Some(LOST) {
                continue;
            }
            let begun = read(&self.outcomes)?;
            let unfinished = begun.iter().find(|(test, line)| line.is_none() && !deaths.contains_key(*test));
            let Some((test, _)) = unfinished else {
                let ran = !begun.is_empty() || code == Some(5);
                ensure!(ran, "{file} does not run:\n{}", ended.output);
                return Ok(rows(suite, begun, &deaths));
            };
            deaths.insert(test.clone(), ended.output);
        }
    }

    fn command(&self, suite: &Suite, file: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.current_dir(&self.tests).args(["-m", "pytest", "--quiet", "--no-showlocals", "--tb=short"]);
        // What the driver says before it ends the process must not be caught and lost.
        command.arg("--capture=no");
        for plugin in suite.plugins {
            command.args(["-p", plugin]);
        }
        command.args(["-p", "no:cacheprovider", "-o", LIMIT, "-o", "faulthandler_exit_on_timeout=true"]);
        command.args(["--rootdir", ".", file]);
        command.env("PYTHONPATH", &self.plugins).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("LD_LIBRARY_PATH", &self.libraries).env("CUDA_SUITES_OUTCOMES", &self.outcomes);
        command
    }
}

/// The last line of each test that began, `None` if it did not end.
fn read(path: &Path) -> Result<BTreeMap<String, Option<Line>>> {
    let mut found = BTreeMap::new();
    let text = if path.exists() { std::fs::read_to_string(path)? } else { String::new() };
    for line in text.lines() {
        let line: Line = serde_json::from_str(line)?;
        let test = line.test.clone();
        found.insert(test, line.outcome.is_some().then_some(line));
    }
    Ok(found)
}

fn rows(suite: &Suite, begun: BTreeMap<String, Option<Line>>, deaths: &BTreeMap<String, String>) -> Vec<Row> {
    let row = |(test, line): (String, Option<Line>)| {
        let output = deaths.get(&test).cloned().unwrap_or_default();
        let outcome = line.map_or(Outcome::Failed { reason: "it ended its process".to_owned() }, outcome_of);
        Row { suite: suite.name.into(), test, outcome, seconds: 0.0, output, flaky: None }
    };
    begun.into_iter().map(row).collect()
}

fn outcome_of(line: Line) -> Outcome {
    match line.outcome.as_deref() {
        Some("passed") => Outcome::Passed,
        Some("skipped") => Outcome::Skipped { reason: line.reason },
        _ => Outcome::Failed { reason: line.reason },
    }
}
