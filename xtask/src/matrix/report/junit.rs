//! The report as JUnit's XML, which CI systems read: a suite for each row.

use std::time::Duration;

use anyhow::{Context, Result};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

use super::{MatrixReport, RowReport, TestReport};
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
    if let Some(reason) = &row.skipped {
        suite.add_property(("skipped", reason.as_str()));
    }
    for (axis, value) in &row.axes.0 {
        suite.add_property((axis.name(), value.as_str()));
    }
    suite.add_test_cases(row.tests.iter().map(case));
    suite
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
