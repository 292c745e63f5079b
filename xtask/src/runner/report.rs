//! The report of a run: tables and JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::Result;

use super::Outcome;
use super::suite::Test;

/// A test of the run.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Row {
    /// The test binary.
    pub suite: String,
    /// The test's name in the binary.
    pub test: String,
    /// Its outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// How long its process ran.
    pub seconds: f64,
    /// The output of its first failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// The reason of its first failure, if it passed when run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaky: Option<String>,
}

impl Row {
    /// A test that ran for no time.
    pub(crate) fn new(test: &Test<'_>, outcome: Outcome) -> Self {
        let (suite, test) = (test.binary.name.clone(), test.name.clone());
        Self { suite, test, outcome, seconds: 0.0, output: String::new(), flaky: None }
    }

    /// A test that is not run.
    pub(crate) fn skipped(test: &Test<'_>, reason: &str) -> Self {
        Self::new(test, Outcome::Skipped { reason: reason.to_owned() })
    }

    /// The test's name behind that of its binary.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}::{}", self.suite, self.test)
    }

    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { suite, test, outcome, seconds, .. } = self;
        write!(formatter, "{:7} {seconds:7.2} s  {suite}::{test}", outcome.word())?;
        outcome.reason().map_or(Ok(()), |reason| write!(formatter, "  ({reason})"))
    }
}

/// A test run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    /// The driver: version and origin.
    pub driver: String,
    /// Its devices.
    pub devices: Vec<String>,
    /// One row for each test.
    pub rows: Vec<Row>,
}

#[derive(Clone, Copy, Default)]
struct Totals {
    passed: usize,
    failed: usize,
    skipped: usize,
    seconds: f64,
}

impl Totals {
    fn add(&mut self, row: &Row) {
        match row.outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed { .. } => self.failed += 1,
            Outcome::Skipped { .. } => self.skipped += 1,
        }
        self.seconds += row.seconds;
    }

    fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut totals = Self::default();
        rows.into_iter().for_each(|row| totals.add(row));
        totals
    }
}

impl Report {
    /// Whether at least one test ran, and none failed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        Totals::of(&self.rows).failed == 0 && !self.rows.is_empty()
    }

    /// Prints every test, one a line, for runs that did not print them on the way.
    pub fn print_rows(&self) {
        if super::progress::is_watched() {
            println!();
            self.rows.iter().for_each(|row| println!("{row}"));
        }
    }

    /// Prints failures with their output, skipped tests with their reasons, a line for each test
    /// binary, and the totals.
    pub fn print(&self) {
        for row in &self.rows {
            let (suite, test, output) = (&row.suite, &row.test, row.output.trim_end());
            match (&row.outcome, &row.flaky) {
                (Outcome::Failed { reason }, _) => {
                    println!("\n---- {suite}::{test} failed: {reason}\n{output}")
                }
                (_, Some(reason)) => {
                    println!(
                        "\n---- {suite}::{test} is flaky: it passed when run again, after this: {reason}\n{output}"
                    );
                }
                _ => {}
            }
        }
        self.print_skipped();
        self.print_suites();
        if self.rows.is_empty() {
            println!("\nno test has such a name");
        }
        println!("\n{}", self.counts());
        if !self.flaky().is_empty() {
            println!("{}", self.flaky());
        }
    }

    /// `N passed, N failed, N skipped`
    #[must_use]
    pub fn counts(&self) -> String {
        let Totals { passed, failed, skipped, .. } = Totals::of(&self.rows);
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }

    /// Names the tests that passed only when run again; empty if there are none.
    #[must_use]
    pub fn flaky(&self) -> String {
        let names = self.rows.iter().filter(|row| row.flaky.is_some());
        let names: Vec<_> = names.map(|row| format!("{}::{}", row.suite, row.test)).collect();
        if names.is_empty() { String::new() } else { format!("flaky: {}", names.join(", ")) }
    }

    fn print_skipped(&self) {
        let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in &self.rows {
            if let Outcome::Skipped { reason } = &row.outcome {
                reasons.entry(reason).or_default().push(format!("{}::{}", row.suite, row.test));
            }
        }
        for (reason, tests) in reasons {
            println!("\nskipped: {reason}");
            tests.iter().for_each(|test| println!("  {test}"));
        }
    }

    fn print_suites(&self) {
        let mut suites: BTreeMap<&str, Totals> = BTreeMap::new();
        for row in &self.rows {
            suites.entry(&row.suite).or_default().add(row);
        }
        let width = suites.keys().map(|name| name.len()).max().unwrap_or(0).max("tests of".len());
        println!("\n{:width$} {:>7} {:>7} {:>8} {:>9}", "tests of", "passed", "failed", "skipped", "time");
        for (name, Totals { passed, failed, skipped, seconds }) in suites {
            println!("{name:width$} {passed:7} {failed:7} {skipped:8} {seconds:7.1} s");
        }
    }

    /// Writes the run as JSON.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, serde_json::to_string_pretty(self)? + "\n")?;
        println!("wrote {}", path.display());
        Ok(())
    }
}
