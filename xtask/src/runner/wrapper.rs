//! A program that runs a test and watches it, such as compute-sanitizer.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use super::process::Ended;

/// The program, and how it says that it has found something.
#[derive(Clone, Debug)]
pub(crate) struct Wrapper {
    pub(crate) program: OsString,
    /// Its arguments before the test's program.
    pub(crate) arguments: Vec<OsString>,
    /// Its exit code if it has found something.
    pub(crate) found: i32,
}

impl Wrapper {
    /// The command that runs a test's program.
    pub(crate) fn command(&self, test: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(test);
        command
    }

    /// What it has found.
    pub(crate) fn finding(&self, ended: &Ended) -> Option<String> {
        let code = ended.status.and_then(|status| status.code());
        let mut summaries = ended.output.lines().rev().filter_map(|line| line.split_once("SUMMARY: "));
        let words = summaries.next().map_or("see its output", |(_, words)| words);
        (code == Some(self.found)).then(|| format!("found by the tool: {words}"))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn its_exit_code_and_its_last_summary_tell_what_it_has_found() {
        let wrapper = Wrapper { program: "tool".into(), arguments: Vec::new(), found: 86 };
        let ended = |code: i32, output: &str| Ended {
            status: Some(ExitStatus::from_raw(code << 8)),
            output: output.to_owned(),
            time: std::time::Duration::ZERO,
        };
        let lines = "========= ERROR SUMMARY: 0 errors\n========= ERROR SUMMARY: 2 errors\n";
        assert_eq!(wrapper.finding(&ended(86, lines)).as_deref(), Some("found by the tool: 2 errors"));
        assert_eq!(wrapper.finding(&ended(86, "")).as_deref(), Some("found by the tool: see its output"));
        assert_eq!(wrapper.finding(&ended(101, lines)), None);
    }
}
