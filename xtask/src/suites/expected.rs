//! The tests that are expected to fail, from `expected_failures.txt`.

use anyhow::{Context, Result};
use xtask::pattern::matches;
use xtask::runner::{Outcome, Row};

const FILE: &str = include_str!("expected_failures.txt");

/// All groups, in the order of the file.
pub(super) struct Expected {
    pub(super) groups: Vec<Group>,
}

/// Tests that fail for one reason.
pub(super) struct Group {
    pub(super) reason: &'static str,
    /// Tests that fail.
    tests: Vec<Pattern>,
    /// Texts that tell the reason: any test whose failure has one of them belongs to the group.
    texts: Vec<&'static str>,
}

/// A test, or all tests whose names match.
struct Pattern {
    /// It also passes at times.
    is_flaky: bool,
    suite: &'static str,
    /// A `*` stands for any text.
    test: &'static str,
}

impl Expected {
    pub(super) fn read() -> Result<Self> {
        let mut groups: Vec<Group> = Vec::new();
        for line in FILE.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(reason) = line.strip_prefix("= ") {
                groups.push(Group { reason, tests: Vec::new(), texts: Vec::new() });
                continue;
            }
            let group = groups.last_mut().with_context(|| format!("no reason stands before {line}"))?;
            if let Some(text) = line.strip_prefix("~ ") {
                group.texts.push(text);
                continue;
            }
            let (is_flaky, line) = line.strip_prefix("? ").map_or((false, line), |line| (true, line));
            let (suite, test) = line.split_once(' ').with_context(|| format!("no suite and test: {line}"))?;
            group.tests.push(Pattern { is_flaky, suite, test });
        }
        Ok(Self { groups })
    }

    /// The group of a test that failed.
    pub(super) fn group_of(&self, row: &Row) -> Option<usize> {
        self.groups.iter().position(|group| group.has(row))
    }

    /// The patterns of tests that ran, none of which failed.
    pub(super) fn without_failure(&self, rows: &[Row]) -> Vec<String> {
        let patterns = self.groups.iter().flat_map(|group| &group.tests);
        let is_stale = |pattern: &&Pattern| {
            if pattern.is_flaky {
                return false;
            }
            let mut ran = rows.iter().filter(|row| pattern.matches(row)).peekable();
            ran.peek().is_some() && !ran.any(|row| matches!(row.outcome, Outcome::Failed { .. }))
        };
        patterns.filter(is_stale).map(|pattern| format!("{} {}", pattern.suite, pattern.test)).collect()
    }
}

impl Group {
    fn has(&self, row: &Row) -> bool {
        let reason = row.outcome.reason().unwrap_or_default();
        self.tests.iter().any(|pattern| pattern.matches(row))
            || self.texts.iter().any(|text| reason.contains(text) || row.output.contains(text))
    }
}

impl Pattern {
    fn matches(&self, row: &Row) -> bool {
        self.suite == row.suite && matches(self.test, &row.test)
    }
}

#[cfg(test)]
mod tests {
    use super::Expected;

    #[test]
    fn the_file_can_be_read() {
        let groups = Expected::read().unwrap().groups;
        assert!(groups.iter().all(|group| !group.tests.is_empty() || !group.texts.is_empty()));
    }
}
