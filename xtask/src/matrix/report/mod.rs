//! The report of a matrix: what became of each test in each row.

mod earlier;
mod junit;
mod markdown;
mod summary;
mod table;

use std::path::Path;

use anyhow::{Context, Result};

use super::UNFINISHED;
use super::axes::Axes;
use super::condition::Place;
use super::declaration::Declaration;
use super::expand::Planned;
use super::origin::Origin;
use super::private::hidden;
use crate::detect::Machine;
use crate::pattern::matches;
use crate::runner::{Outcome, Row};

pub(super) use earlier::Earlier;
pub(super) use table::print;

/// The file of the report that programs read.
const JSON: &str = "matrix.json";

/// A test in a row.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct TestReport {
    #[serde(flatten)]
    pub(super) row: Row,
    /// Why its failure is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expected: Option<String>,
}

/// A row of the matrix.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct RowReport {
    pub(super) name: String,
    /// The values of the axes that are not as usual.
    pub(super) axes: Axes,
    pub(super) groups: Vec<String>,
    /// Groups that did not run in the row, with the reasons.
    pub(super) left_out: Vec<(String, String)>,
    /// Why the row did not run.
    pub(super) skipped: Option<String>,
    pub(super) seconds: f64,
    /// The texts of which a test had one in its name; none if all were chosen.
    pub(super) filter: Vec<String>,
    pub(super) tests: Vec<TestReport>,
    /// The number of tests that have not run yet.
    pub(super) left: usize,
    /// Declared failures that did not happen.
    pub(super) stale: Vec<Stale>,
}

/// A declared failure that did not happen.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Stale {
    pub(super) tests: String,
    pub(super) reason: String,
}

/// A run of the matrix, or several that went on with one another.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct MatrixReport {
    pub(super) origin: Origin,
    pub(super) machine: Machine,
    pub(super) rows: Vec<RowReport>,
    /// Patterns of the declaration that are the name of no test.
    pub(super) unmatched: Vec<String>,
}

/// Counts of tests by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    /// Of those that passed, how many did so only when run again.
    pub(super) flaky: usize,
    pub(super) failed: usize,
    pub(super) expected: usize,
    pub(super) skipped: usize,
}

impl Counts {
    pub(super) fn add(&mut self, row: &Row, is_expected: bool) {
        match row.outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Skipped { .. } => self.skipped += 1,
            Outcome::Failed { .. } if is_expected => self.expected += 1,
            Outcome::Failed { .. } => self.failed += 1,
        }
        self.flaky += usize::from(row.flaky.is_some());
    }

    fn of<'a>(tests: impl IntoIterator<Item = &'a TestReport>) -> Self {
        let mut counts = Self::default();
        tests.into_iter().for_each(|test| counts.add(&test.row, test.expected.is_some()));
        counts
    }

    pub(super) fn words(self) -> String {
        let Self { passed, flaky, failed, expected, skipped } = self;
        let flaky = if flaky > 0 { format!(" ({flaky} flaky)") } else { String::new() };
        format!("{passed} passed{flaky}, {failed} failed, {expected} expected, {skipped} skipped")
    }
}

/// How a run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The exit code.
    pub(super) code: u8,
    pub(super) words: String,
}

impl RowReport {
    pub(super) fn new(planned: &Planned) -> Self {
        Self {
            name: planned.name.clone(),
            axes: planned.axes.clone(),
            groups: planned.groups.clone(),
            left_out: planned.left_out.clone(),
            skipped: planned.skipped.clone(),
            seconds: 0.0,
            filter: Vec::new(),
            tests: Vec::new(),
            left: 0,
            stale: Vec::new(),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        Counts::of(&self.tests)
    }

    /// Finds the failures declared for the row that did not happen: patterns of which tests ran,
    /// and all passed at once. If the row does not have all its tests, only patterns of single
    /// tests are looked at.
    pub(super) fn find_stale(&mut self, declaration: &Declaration, place: &Place<'_>) {
        let has_all = self.filter.is_empty() && self.left == 0;
        self.stale.clear();
        for expected in
            declaration.expected.iter().filter(|expected| !expected.sometimes && expected.holds(place))
        {
            for pattern in expected.tests.iter().filter(|pattern| has_all || !pattern.contains('*')) {
                let named = self.tests.iter().filter(|test| matches(pattern, &test.row.full_name()));
                let mut ran =
                    named.filter(|test| !matches!(test.row.outcome, Outcome::Skipped { .. })).peekable();
                let passed =
                    |test: &TestReport| test.row.outcome == Outcome::Passed && test.row.flaky.is_none();
                if ran.peek().is_some() && ran.all(passed) {
                    let (tests, reason) = (pattern.clone(), expected.reason.clone());
                    self.stale.push(Stale { tests, reason });
                }
            }
        }
    }
}

impl MatrixReport {
    pub(super) fn total(&self) -> Counts {
        Counts::of(self.rows.iter().flat_map(|row| &row.tests))
    }

    /// Declared failures that did not happen, each behind its row.
    fn stale(&self) -> impl Iterator<Item = (&str, &Stale)> {
        self.rows.iter().flat_map(|row| row.stale.iter().map(|stale| (row.name.as_str(), stale)))
    }

    /// The number of tests that have not run yet.
    fn left(&self) -> usize {
        self.rows.iter().map(|row| row.left).sum()
    }

    /// The texts by which tests of some row were chosen.
    fn filters(&self) -> Vec<&str> {
        let all: std::collections::BTreeSet<_> = self.rows.iter().flat_map(|row| &row.filter).collect();
        all.into_iter().map(String::as_str).collect()
    }

    /// Whether at least one test ran, none failed that is not expected to, and each expected
    /// failure happened; in words, and as an exit code.
    pub(super) fn verdict(&self) -> Verdict {
        let (total, stale, left) = (self.total(), self.stale().count(), self.left());
        let is_bad = total.failed > 0 || stale > 0;
        let mut words = total.words();
        if stale > 0 {
            words += &format!(", {stale} declared to fail and passed");
        }
        if left > 0 {
            words += &format!("; {left} tests are left, which --resume runs");
            return Verdict { code: UNFINISHED, words };
        }
        if total.passed + total.expected + total.failed == 0 {
            words += match (self.rows.iter().all(|row| row.skipped.is_some()), total.skipped) {
                (true, _) => "; no test ran: no row can run here",
                (false, 0) => "; no test ran: none has such a name",
                (false, _) => "; no test ran: all were skipped",
            };
            return Verdict { code: 1, words };
        }
        Verdict { code: u8::from(is_bad), words }
    }

    /// Writes the report as Markdown, JSON and JUnit's XML. Whoever reads meanwhile finds the old
    /// ones or the new ones.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let write = |name: &str, text: String| {
            let (path, new) = (folder.join(name), folder.join(format!(".{name}.new")));
            let written = std::fs::write(&new, hidden(&text)).and_then(|()| std::fs::rename(&new, &path));
            written.with_context(|| format!("{} cannot be written", path.display()))
        };
        write("matrix.md", markdown::text(self))?;
        write(JSON, serde_json::to_string_pretty(self)? + "\n")?;
        write("junit.xml", junit::text(self)?)
    }
}
