//! The declaration of the matrix: one TOML file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::axes::{Axes, Axis};
use super::condition::{Condition, Place, ensure_value};
use crate::pattern::matches;
use crate::runner::Row;

/// The file's name, in the folder of the tests and in a bundle.
pub const FILE: &str = "matrix.toml";

/// The matrix as declared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declaration {
    /// Tests that each row runs beside its groups: those that look at the axes.
    pub(super) always: Tests,
    /// Tests by subject.
    pub(super) groups: BTreeMap<String, Group>,
    /// The row in which all axes are as usual.
    pub(super) base: Base,
    /// Rows that differ from the base row in one axis.
    #[serde(default)]
    pub(super) vary: Vec<Vary>,
    /// Rows of their own.
    #[serde(default)]
    pub(super) row: Vec<Named>,
    /// The programs that watch tests, by the value of their axis.
    #[serde(default)]
    pub(super) tools: BTreeMap<String, Tool>,
    /// Tests that a row leaves out.
    #[serde(default)]
    pub(super) skip: Vec<Exception>,
    /// Tests that are known to fail.
    #[serde(default)]
    pub(super) expected: Vec<Exception>,
}

/// Tests by the patterns of their names.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tests {
    tests: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
}

/// Tests that belong together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    tests: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    /// How many devices they need.
    #[serde(default = "one")]
    pub(super) devices: usize,
    /// The device that they use, whatever the row's is.
    pub(super) only_device: Option<usize>,
}

fn one() -> usize {
    1
}

/// The groups of the base row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Base {
    pub(super) groups: Vec<String>,
}

/// Values of one axis, each with a row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vary {
    pub(super) axis: Axis,
    pub(super) values: Vec<String>,
    pub(super) groups: Vec<String>,
}

/// A row with a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) groups: Vec<String>,
    #[serde(default)]
    pub(super) set: Axes,
}

/// How a program watches tests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    /// Its arguments, before the test's program.
    pub(super) arguments: Vec<String>,
    /// How many times slower tests are.
    pub(super) patience: u32,
}

/// Tests that are left out or known to fail, and when.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exception {
    /// Patterns of full names.
    pub(super) tests: Vec<String>,
    /// Why.
    pub(super) reason: String,
    /// Where.
    #[serde(default)]
    when: Condition,
    /// A failure is the known one only if its reason or output has one of these texts.
    #[serde(default)]
    says: Vec<String>,
    /// The tests also pass at times, so that a pass is no news.
    #[serde(default)]
    pub(super) sometimes: bool,
}

impl Declaration {
    /// Reads and checks the file.
    ///
    /// # Errors
    /// The file cannot be read, or says something that cannot be.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("the matrix, {}, cannot be read", path.display()))?;
        Self::parse(&text).with_context(|| format!("in {}", path.display()))
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let declaration: Self = toml::from_str(text)?;
        declaration.check()?;
        Ok(declaration)
    }

    fn check(&self) -> Result<()> {
        let vary = self.vary.iter().flat_map(|vary| &vary.groups);
        let named = self.row.iter().flat_map(|row| &row.groups);
        for group in self.base.groups.iter().chain(vary).chain(named) {
            ensure!(self.groups.contains_key(group), "there is no group `{group}`");
        }
        for vary in &self.vary {
            vary.values.iter().try_for_each(|value| ensure_value(vary.axis, value))?;
        }
        for row in &self.row {
            row.set.0.iter().try_for_each(|(axis, value)| ensure_value(*axis, value))?;
        }
        self.tools.keys().try_for_each(|tool| ensure_value(Axis::Tool, tool))?;
        for exception in self.skip.iter().chain(&self.expected) {
            exception.when.check().with_context(|| format!("of the tests that {}", exception.reason))?;
        }
        Ok(())
    }

    /// Why a row leaves a test out.
    pub(super) fn skip_reason(&self, test: &str, place: &Place<'_>) -> Option<&str> {
        let found = self.skip.iter().find(|skip| skip.names(test) && skip.when.holds(place));
        found.map(|skip| skip.reason.as_str())
    }

    /// The patterns that are the name of no test, each with its place.
    pub(super) fn unmatched(&self, tests: &[String]) -> Vec<String> {
        let groups = self.groups.iter().map(|(name, group)| (format!("group {name}"), &group.tests));
        let skips = self.skip.iter().map(|skip| (format!("skip, {}", skip.reason), &skip.tests));
        let expected = self.expected.iter().map(|one| (format!("expected, {}", one.reason), &one.tests));
        let always = [("always".to_owned(), &self.always.tests)];
        let all = always.into_iter().chain(groups).chain(skips).chain(expected);
        let is_name = |pattern: &String| tests.iter().any(|test| matches(pattern, test));
        let unmatched = |(place, patterns): (String, &Vec<String>)| {
            let found = patterns.iter().filter(|pattern| !is_name(pattern));
            found.map(|pattern| format!("{pattern} ({place})")).collect::<Vec<_>>()
        };
        all.flat_map(unmatched).collect()
    }

    /// The declaration of a failure.
    pub(super) fn expected(&self, row: &Row, place: &Place<'_>) -> Option<&Exception> {
        self.expected.iter().find(|expected| expected.explains(row, place))
    }
}

impl Tests {
    pub(super) fn has(&self, test: &str) -> bool {
        has(&self.tests, &self.except, test)
    }
}

impl Group {
    pub(super) fn has(&self, test: &str) -> bool {
        has(&self.tests, &self.except, test)
    }
}

fn has(tests: &[String], except: &[String], test: &str) -> bool {
    let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, test));
    any(tests) && !any(except)
}

impl Exception {
    fn names(&self, test: &str) -> bool {
        self.tests.iter().any(|pattern| matches(pattern, test))
    }

    /// Whether it is declared for this place.
    pub(super) fn holds(&self, place: &Place<'_>) -> bool {
        self.when.holds(place)
    }

    fn explains(&self, row: &Row, place: &Place<'_>) -> bool {
        let reason = row.outcome.reason().unwrap_or_default();
        let says = |text: &String| reason.contains(text) || row.output.contains(text);
        self.names(&row.full_name())
            && self.holds(place)
            && (self.says.is_empty() || self.says.iter().any(says))
    }
}
