//! The report as Markdown.

use std::fmt::Write;

use super::summary::{ByReason, Summary, rows};
use super::{Counts, MatrixReport, Stale};

/// Tells `cargo xtask words` that nobody has written the text.
const MADE: &str = "<!-- Made by `cargo xtask test-gpu`. Do not edit. -->";

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
    let origin = &report.origin;
    writeln!(out, "{MADE}\n\n# Matrix\n\n```text")?;
    writeln!(out, "version    {}", origin.build())?;
    writeln!(out, "time       {} to {}", origin.began, origin.ended)?;
    writeln!(out, "{}```\n", report.machine)?;
    writeln!(out, "{}\n", report.verdict().words)?;
    if !report.filters().is_empty() {
        writeln!(
            out,
            "Only tests with one of these in their names ran: `{}`\n",
            report.filters().join("`, `")
        )?;
    }
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
    if report.stale().next().is_some() {
        writeln!(out, "\n## Declared to fail, and passed\n")?;
    }
    for (row, Stale { tests, reason }) in report.stale() {
        writeln!(out, "- `{tests}`, row {row} ({reason})")?;
    }
    if !report.unmatched.is_empty() {
        writeln!(out, "\n## Declared, and no test's name\n")?;
    }
    report.unmatched.iter().try_for_each(|pattern| writeln!(out, "- {pattern}"))?;
    reasons(out, "Expected to fail", &summary.expected, report)?;
    reasons(out, "Skipped", &summary.skipped, report)
}

fn table(out: &mut String, report: &MatrixReport) -> std::fmt::Result {
    writeln!(out, "| row | passed | flaky | failed | expected | skipped | left | time |")?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---:|")?;
    let mut line = |name: &str, counts: Counts, left: usize, seconds: f64| {
        let Counts { passed, flaky, failed, expected, skipped } = counts;
        let name = name.replace('|', "\\|");
        writeln!(
            out,
            "| {name} | {passed} | {flaky} | {failed} | {expected} | {skipped} | {left} | {seconds:.1} s |"
        )
    };
    for row in report.rows.iter().filter(|row| row.skipped.is_none()) {
        line(&row.name, row.counts(), row.left, row.seconds)?;
    }
    line("total", report.total(), report.left(), report.rows.iter().map(|row| row.seconds).sum())?;
    let skipped = report.rows.iter().filter_map(|row| Some((&row.name, row.skipped.as_ref()?)));
    let mut skipped = skipped.peekable();
    if skipped.peek().is_some() {
        writeln!(out, "\nRows that did not run:\n")?;
    }
    for (name, reason) in skipped {
        writeln!(out, "- {name}: {reason}")?;
    }
    let ran = report.rows.iter().filter(|row| row.skipped.is_none());
    let left_out = ran.flat_map(|row| row.left_out.iter().map(|left_out| (&row.name, left_out)));
    let mut left_out = left_out.peekable();
    if left_out.peek().is_some() {
        writeln!(out, "\nGroups that did not run in their rows:\n")?;
    }
    for (name, (group, reason)) in left_out {
        writeln!(out, "- {name}, {group}: {reason}")?;
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
