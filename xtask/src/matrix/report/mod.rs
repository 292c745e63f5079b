//! The report of a matrix: what became of each test in each row.

mod junit;
mod markdown;
mod summary;
mod table;

use std::path::Path;

use anyhow::{Context, Result};

use super::axes::Axes;
use super::condition::Place;
use super::declaration::Declaration;
use super::expand::Planned;
use crate::detect::Machine;
use crate::pattern::matches;
use crate::runner::{Outcome, Row};

pub(super) use table::print;

/// A test in a row.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct TestReport {
    #[serde(flatten)]
    pub(super) row: Row,
    /// Why its failure is expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expected: Option<String>,
}

/// A row of the matrix.
#[derive(Clone, Debug, serde::Serialize)]
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
    pub(super) tests: Vec<TestReport>,
}

/// A run of the matrix.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct MatrixReport {
    pub(super) machine: Machine,
    pub(super) rows: Vec<RowReport>,
    /// Declared failures that did not happen.
    pub(super) stale: Vec<String>,
}

/// Counts of tests by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: usize,
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
    }

    pub(super) fn words(self) -> String {
        let Self { passed, failed, expected, skipped } = self;
        format!("{passed} passed, {failed} failed, {expected} expected, {skipped} skipped")
    }
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
            tests: Vec::new(),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.tests.iter().for_each(|test| counts.add(&test.row, test.expected.is_some()));
        counts
    }
}

impl MatrixReport {
    /// Whether at least one test ran, none failed that is not expected to, and each expected
    /// failure happened.
    pub(super) fn is_good(&self) -> bool {
        let total = self.total();
        let ran = total.passed + total.expected > 0;
        ran && total.failed == 0 && self.stale.is_empty()
    }

    pub(super) fn total(&self) -> Counts {
        let mut total = Counts::default();
        let tests = self.rows.iter().flat_map(|row| &row.tests);
        tests.for_each(|test| total.add(&test.row, test.expected.is_some()));
        total
    }

    /// Writes the report as Markdown, JSON and JUnit's XML.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("no folder {}", folder.display()))?;
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
        };
        write("matrix.md", markdown::text(self))?;
        write("matrix.json", serde_json::to_string_pretty(self)? + "\n")?;
        write("junit.xml", junit::text(self)?)
    }
}

/// The failures declared for a row that did not happen: patterns of which tests ran and none
/// failed. If a filter chose the tests, only patterns of single tests are looked at.
pub(super) fn stale(
    declaration: &Declaration,
    place: &Place<'_>,
    row: &RowReport,
    is_filtered: bool,
) -> Vec<String> {
    let mut stale = Vec::new();
    for expected in
        declaration.expected.iter().filter(|expected| !expected.sometimes && expected.holds(place))
    {
        for pattern in expected.tests.iter().filter(|pattern| !is_filtered || !pattern.contains('*')) {
            let named = row.tests.iter().filter(|test| matches(pattern, &test.row.full_name()));
            let mut ran =
                named.filter(|test| !matches!(test.row.outcome, Outcome::Skipped { .. })).peekable();
            if ran.peek().is_some() && ran.all(|test| test.row.outcome == Outcome::Passed) {
                stale.push(format!("{}: {pattern} ({})", row.name, expected.reason));
            }
        }
    }
    stale
}
