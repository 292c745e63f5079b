//! A report by what one looks for: failures, expected failures, skipped tests.

use std::collections::BTreeMap;

use super::{MatrixReport, TestReport};
use crate::runner::Outcome;

/// Tests by reason, each with the rows.
pub(super) type ByReason<'a> = BTreeMap<&'a str, BTreeMap<String, Vec<&'a str>>>;

pub(super) struct Summary<'a> {
    /// Failures that nobody declared, with their rows.
    pub(super) failed: Vec<(&'a str, &'a TestReport)>,
    /// Tests that passed only when run again, with their rows.
    pub(super) flaky: Vec<(&'a str, &'a TestReport)>,
    pub(super) expected: ByReason<'a>,
    pub(super) skipped: ByReason<'a>,
}

impl<'a> Summary<'a> {
    pub(super) fn of(report: &'a MatrixReport) -> Self {
        let mut summary = Self {
            failed: Vec::new(),
            flaky: Vec::new(),
            expected: ByReason::new(),
            skipped: ByReason::new(),
        };
        for row in &report.rows {
            row.tests.iter().for_each(|test| summary.add(&row.name, test));
        }
        summary
    }

    fn add(&mut self, row: &'a str, test: &'a TestReport) {
        let note = |kind: &mut ByReason<'a>, reason: &'a str| {
            kind.entry(reason).or_default().entry(test.row.full_name()).or_default().push(row);
        };
        match (&test.row.outcome, &test.expected) {
            (Outcome::Passed, _) => {}
            (Outcome::Skipped { reason }, _) => note(&mut self.skipped, reason),
            (Outcome::Failed { .. }, Some(reason)) => note(&mut self.expected, reason),
            (Outcome::Failed { .. }, None) => self.failed.push((row, test)),
        }
        if test.row.flaky.is_some() {
            self.flaky.push((row, test));
        }
    }
}

/// The rows of a test, unless it is in all that ran.
pub(super) fn rows(rows: &[&str], report: &MatrixReport) -> String {
    let ran = report.rows.iter().filter(|row| !row.tests.is_empty()).count();
    if rows.len() == ran { String::new() } else { format!(" [{}]", rows.join(", ")) }
}
