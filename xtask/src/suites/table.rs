//! The report of a run: a table of the parts, the reasons of failures, and the totals.

use std::collections::BTreeMap;

use xtask::runner::{Outcome, Row};

use super::expected::Expected;
use super::part;

#[derive(Clone, Copy, Default)]
struct Counts {
    passed: usize,
    failed: usize,
    expected: usize,
    skipped: usize,
}

impl Counts {
    fn add(&mut self, row: &Row, expected: &Expected) {
        match row.outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Skipped { .. } => self.skipped += 1,
            Outcome::Failed { .. } if expected.group_of(row).is_some() => self.expected += 1,
            Outcome::Failed { .. } => self.failed += 1,
        }
    }

    fn print(self, name: &str) {
        let Self { passed, failed, expected, skipped } = self;
        println!("{name:50} {passed:7} {failed:7} {expected:9} {skipped:8}");
    }
}

/// Prints everything, and gives whether all tests did as expected.
pub(super) fn print(rows: &[Row], expected: &Expected) -> bool {
    print_skipped(rows);
    print_reasons(rows, expected);
    let surprises = print_surprises(rows, expected);
    println!("\n{:50} {:>7} {:>7} {:>9} {:>8}", "", "passed", "failed", "expected", "skipped");
    let mut parts: BTreeMap<String, Counts> = BTreeMap::new();
    let mut suites: BTreeMap<&str, Counts> = BTreeMap::new();
    for row in rows {
        parts.entry(format!("{} {}", row.suite, part(row))).or_default().add(row, expected);
        suites.entry(&row.suite).or_default().add(row, expected);
    }
    parts.iter().for_each(|(name, counts)| counts.print(name));
    println!();
    suites.iter().for_each(|(name, counts)| counts.print(name));
    surprises == 0
}

/// The failures that nobody declared, and the declared ones that did not happen.
fn print_surprises(rows: &[Row], expected: &Expected) -> usize {
    let mut count = 0;
    for row in rows {
        if let (Outcome::Failed { reason }, None) = (&row.outcome, expected.group_of(row)) {
            println!("\n---- {} {} failed: {reason}\n{}", row.suite, row.test, row.output.trim_end());
            count += 1;
        }
    }
    for pattern in expected.without_failure(rows) {
        println!("\n---- {pattern} is expected to fail, and did not");
        count += 1;
    }
    count
}

fn print_reasons(rows: &[Row], expected: &Expected) {
    let mut counts = vec![0; expected.groups.len()];
    for row in rows.iter().filter(|row| matches!(row.outcome, Outcome::Failed { .. })) {
        if let Some(count) = expected.group_of(row).and_then(|group| counts.get_mut(group)) {
            *count += 1;
        }
    }
    println!("\nexpected failures:");
    for (group, count) in expected.groups.iter().zip(counts).filter(|(_, count)| *count > 0) {
        println!("{count:5}  {}", group.reason);
    }
}

fn print_skipped(rows: &[Row]) {
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for row in rows {
        if let Outcome::Skipped { reason } = &row.outcome {
            *reasons.entry((&row.suite, reason)).or_default() += 1;
        }
    }
    println!("\nskipped:");
    for ((suite, reason), count) in reasons {
        println!("{count:5}  {suite}: {reason}");
    }
}
