//! The report as Markdown.

use std::fmt::Write;

use super::summary::{ByReason, Summary, rows};
use super::{Counts, MatrixReport};

/// What is shown of the output of one failure.
const LINES: usize = 60;

/// The whole report.
pub(super) fn text(report: &MatrixReport) -> String {
    let mut out = String::new();
    // Writing to a text does not fail.
    let _ = write(&mut out, report);
    out
}

fn write(out: &mut String, report: &MatrixReport) -> std::fmt::Result {
    let summary = Summary::of(report);
    writeln!(out, "# Matrix\n\n```text\n{}```\n", report.machine)?;
    table(out, report)?;
    if !summary.failed.is_empty() {
        writeln!(out, "\n## Failed")?;
    }
    for (row, test) in &summary.failed {
        let reason = test.row.outcome.reason().unwrap_or_default();
        writeln!(out, "\n### `{}`, row {row}\n\n{reason}", test.row.full_name())?;
        block(out, &test.row.output)?;
    }
    if !summary.flaky.is_empty() {
        writeln!(out, "\n## Flaky\n")?;
    }
    for (row, test) in &summary.flaky {
        let reason = test.row.flaky.as_deref().unwrap_or_default();
        writeln!(out, "- `{}`, row {row}: {reason}", test.row.full_name())?;
    }
    if !report.stale.is_empty() {
        writeln!(out, "\n## Declared to fail, and passed\n")?;
    }
    report.stale.iter().try_for_each(|stale| writeln!(out, "- {stale}"))?;
    reasons(out, "Expected to fail", &summary.expected, report)?;
    reasons(out, "Skipped", &summary.skipped, report)
}

fn table(out: &mut String, report: &MatrixReport) -> std::fmt::Result {
    writeln!(out, "| row | passed | failed | expected | skipped | time |\n|---|---:|---:|---:|---:|---:|")?;
    let mut line = |name: &str, Counts { passed, failed, expected, skipped }: Counts, seconds: f64| {
        writeln!(out, "| {name} | {passed} | {failed} | {expected} | {skipped} | {seconds:.1} s |")
    };
    for row in report.rows.iter().filter(|row| row.skipped.is_none()) {
        line(&row.name, row.counts(), row.seconds)?;
    }
    line("total", report.total(), report.rows.iter().map(|row| row.seconds).sum())?;
    let skipped = report.rows.iter().filter_map(|row| Some((&row.name, row.skipped.as_ref()?)));
    let mut skipped = skipped.peekable();
    if skipped.peek().is_some() {
        writeln!(out, "\nRows that did not run:\n")?;
    }
    for (name, reason) in skipped {
        writeln!(out, "- {name}: {reason}")?;
    }
    Ok(())
}

/// The end of an output, in which the reason mostly is. Its fence is longer than any in the text.
fn block(out: &mut String, output: &str) -> std::fmt::Result {
    let lines: Vec<_> = output.trim_end().lines().collect();
    let shown = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    let longest = output.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let mut text = shown.join("\n");
    text.retain(|letter| letter == '\n' || !letter.is_control());
    writeln!(out, "\n{fence}text\n{text}\n{fence}")
}

fn reasons(out: &mut String, what: &str, reasons: &ByReason<'_>, report: &MatrixReport) -> std::fmt::Result {
    if reasons.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## {what}")?;
    for (reason, tests) in reasons {
        writeln!(out, "\n{}: {reason}\n", tests.len())?;
        for (test, of) in tests {
            writeln!(out, "- `{test}`{}", rows(of, report))?;
        }
    }
    Ok(())
}
