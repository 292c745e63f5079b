//! The report on the terminal.

use super::summary::{ByReason, Summary, rows};
use super::{Counts, MatrixReport, Stale};

/// Prints failures with their output, expected failures and skipped tests with their reasons, and a
/// table of the rows.
pub(in crate::matrix) fn print(report: &MatrixReport) {
    let summary = Summary::of(report);
    for (row, test) in &summary.failed {
        let reason = test.row.outcome.reason().unwrap_or_default();
        println!(
            "\n---- {}, row {row}, failed: {reason}\n{}",
            test.row.full_name(),
            test.row.output.trim_end()
        );
    }
    for (row, test) in &summary.flaky {
        let reason = test.row.flaky.as_deref().unwrap_or_default();
        println!(
            "\n---- {}, row {row}, is flaky: it passed when run again, after this: {reason}",
            test.row.full_name()
        );
    }
    print_reasons("expected to fail", &summary.expected, report);
    print_reasons("skipped", &summary.skipped, report);
    for (row, Stale { tests, reason }) in report.stale() {
        println!("\n---- declared to fail, and passed, row {row}: {tests} ({reason})");
    }
    if !report.unmatched.is_empty() {
        println!("\ndeclared, and no test's name, {}:", report.unmatched.len());
    }
    report.unmatched.iter().for_each(|pattern| println!("  {pattern}"));
    print_rows(report);
}

fn print_reasons(what: &str, reasons: &ByReason<'_>, report: &MatrixReport) {
    for (reason, tests) in reasons {
        println!("\n{what}, {}: {reason}", tests.len());
        tests.iter().for_each(|(test, of)| println!("  {test}{}", rows(of, report)));
    }
}

fn print_rows(report: &MatrixReport) {
    let width = report.rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max("total".len());
    println!(
        "\n{:width$} {:>7} {:>6} {:>7} {:>9} {:>8} {:>6} {:>9}",
        "row", "passed", "flaky", "failed", "expected", "skipped", "left", "time"
    );
    let line = |name: &str, counts: Counts, left: usize, seconds: f64| {
        let Counts { passed, flaky, failed, expected, skipped } = counts;
        println!(
            "{name:width$} {passed:7} {flaky:6} {failed:7} {expected:9} {skipped:8} {left:6} {seconds:7.1} s"
        );
    };
    for row in &report.rows {
        match &row.skipped {
            Some(reason) => println!("{:width$} skipped: {reason}", row.name),
            None => line(&row.name, row.counts(), row.left, row.seconds),
        }
        for (group, reason) in row.left_out.iter().filter(|_| row.skipped.is_none()) {
            println!("{:width$} without {group}: {reason}", "");
        }
    }
    line("total", report.total(), report.left(), report.rows.iter().map(|row| row.seconds).sum());
}
