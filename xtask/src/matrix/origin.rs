//! Of what a report is, and when its tests ran.

use std::time::SystemTime;

use crate::runner::Suite;

/// Of what and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Origin {
    /// The version of the workspace.
    pub(super) version: String,
    /// The commit that was built.
    pub(super) commit: Option<String>,
    /// When the first test started, in UTC.
    pub(super) began: String,
    /// When the report was last written, in UTC.
    pub(super) ended: String,
}

impl Origin {
    /// These tests, now.
    pub(super) fn of(suite: &Suite) -> Self {
        let (began, ended) = (now(), now());
        Self { version: suite.version.clone(), commit: suite.bench.commit.clone(), began, ended }
    }

    /// The version with its commit.
    pub(super) fn build(&self) -> String {
        let commit = self.commit.as_deref().map(|commit| format!(" ({commit})")).unwrap_or_default();
        format!("{}{commit}", self.version)
    }
}

/// The time, to the second.
pub(super) fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
