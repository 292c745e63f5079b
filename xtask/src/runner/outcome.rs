//! The outcome of a test, from how its process ended and what it wrote.

use std::process::ExitStatus;
use std::time::Duration;

use super::process::Ended;

/// The outcome of a test.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// The test ran to its end, and its assertions held.
    Passed,
    /// The test failed.
    Failed {
        /// How the process ended.
        reason: String,
    },
    /// The test cannot run here, or is marked as ignored.
    Skipped {
        /// The reason that the test printed.
        reason: String,
    },
}

/// A test that cannot run prints a line that starts with this, and the reason.
const SKIPPED: &str = "skipped: ";

impl Outcome {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed { .. } => "failed",
            Self::Skipped { .. } => "skipped",
        }
    }

    /// Why a test failed or was skipped.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Failed { reason } | Self::Skipped { reason } => Some(reason),
        }
    }

    /// The outcome of the test that a process of libtest ran alone.
    #[must_use]
    pub fn of(test: &str, ended: &Ended, limit: Duration) -> Self {
        let Some(status) = ended.status else {
            return Self::Failed { reason: format!("stopped after {} s", limit.as_secs()) };
        };
        if !status.success() {
            return Self::Failed { reason: how_it_ended(status) };
        }
        // A process can exit with 0 before its test has finished.
        if !ended.output.contains("test result: ok. 1 passed") {
            return Self::Failed {
                reason: "the process ended well, but without the result of the test".to_owned(),
            };
        }
        match skip_reason(test, &ended.output) {
            Some(reason) => Self::Skipped { reason: reason.to_owned() },
            None => Self::Passed,
        }
    }
}

/// On a machine with one core, libtest runs the test on its main thread, after it has written the
/// name without a line break.
fn skip_reason<'a>(test: &str, output: &'a str) -> Option<&'a str> {
    let announced = format!("test {test} ... ");
    output
        .lines()
        .find_map(|line| line.strip_prefix(&announced).unwrap_or(line).strip_prefix(SKIPPED))
        .map(str::trim)
}

fn how_it_ended(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            4 => " (illegal instruction)",
            6 => " (abort)",
            7 => " (bus error)",
            8 => " (arithmetic)",
            9 => " (killed)",
            11 => " (segmentation fault)",
            _ => "",
        };
        return format!("ended by signal {signal}{name}");
    }
    status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

#[cfg(test)]
mod tests {
    use super::skip_reason;

    #[test]
    fn a_skip_is_found_with_and_without_the_announcement() {
        assert_eq!(
            skip_reason("a::b", "\nrunning 1 test\nskipped: no device\ntest a::b ... ok\n"),
            Some("no device")
        );
        assert_eq!(skip_reason("a::b", "test a::b ... skipped: too old\nok\n"), Some("too old"));
        assert_eq!(skip_reason("a::b", "it said skipped: nothing\ntest a::b ... ok\n"), None);
    }
}
