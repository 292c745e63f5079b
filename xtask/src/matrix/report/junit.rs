//! The report as JUnit's XML, which CI systems read: a suite for each row.

use std::time::Duration;

use anyhow::{Context, Result};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

use super::{MatrixReport, RowReport, Stale, TestReport};
use crate::runner::Outcome;

/// The whole report.
pub(super) fn text(report: &MatrixReport) -> Result<String> {
    let mut all = Report::new("matrix");
    all.set_time(seconds(report.rows.iter().map(|row| row.seconds).sum()));
    all.add_test_suites(report.rows.iter().map(suite));
    all.to_string().context("the report cannot be written as XML")
}

fn suite(row: &RowReport) -> TestSuite {
    let mut suite = TestSuite::new(row.name.clone());
    suite.set_time(seconds(row.seconds));
    for (axis, value) in &row.axes.0 {
        suite.add_property((axis.name(), value.as_str()));
    }
    suite.add_test_cases(row.tests.iter().map(case));
    suite.add_test_cases(row.stale.iter().map(stale));
    suite.add_test_cases(not_run(row));
    suite
}

/// A declared failure that did not happen fails the run.
fn stale(Stale { tests, reason }: &Stale) -> TestCase {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(format!("declared to fail, and passed: {reason}"));
    named("declared", tests, status)
}

/// What the row lacks counts as skipped: the row itself, groups of it, or tests that are left.
fn not_run(row: &RowReport) -> Vec<TestCase> {
    if let Some(reason) = &row.skipped {
        return vec![named("row", &row.name, skipped(reason))];
    }
    let groups = row.left_out.iter().map(|(group, reason)| named("group", group, skipped(reason)));
    let left = (row.left > 0).then(|| named("row", "left", skipped(&format!("{} tests are left", row.left))));
    groups.chain(left).collect()
}

fn named(kind: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name.to_owned(), status);
    case.set_classname(kind.to_owned());
    case
}

/// An expected failure is a skipped test, with the reason.
fn case(test: &TestReport) -> TestCase {
    let row = &test.row;
    let status = match (&row.outcome, &test.expected) {
        (Outcome::Passed, _) => passed(test),
        (Outcome::Skipped { reason }, _) => skipped(reason),
        (Outcome::Failed { .. }, Some(reason)) => skipped(&format!("expected to fail: {reason}")),
        (Outcome::Failed { reason }, None) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(reason.as_str()).set_description(row.output.as_str());
            status
        }
    };
    let mut case = TestCase::new(row.test.clone(), status);
    case.set_classname(row.suite.clone()).set_time(seconds(row.seconds));
    case
}

fn passed(test: &TestReport) -> TestCaseStatus {
    let mut status = TestCaseStatus::success();
    if let Some(reason) = &test.row.flaky {
        let mut run = TestRerun::new(NonSuccessKind::Failure);
        run.set_message(reason.as_str()).set_description(test.row.output.as_str());
        status.add_rerun(run);
    }
    status
}

fn skipped(reason: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(reason);
    status
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
