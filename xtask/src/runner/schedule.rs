//! Runs the tests, several at a time, and then the failed ones again, one at a time.

use std::ffi::OsString;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::process;
use super::suite::Test;
use super::wrapper::Wrapper;
use super::{Outcome, Row};

/// How tests are started.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Environment variables; those without a value are unset.
    pub(crate) environment: Vec<(&'static str, Option<OsString>)>,
    /// A program that runs the test and watches it.
    pub(crate) wrapper: Option<Wrapper>,
    /// The time after which a test is stopped.
    pub(crate) limit: Duration,
    /// Tests at a time.
    pub(crate) jobs: usize,
    /// How often a test that failed is run again.
    pub(crate) retries: u32,
    /// When to start no more tests.
    pub(crate) end: Option<Instant>,
}

/// One row for each test, in the order of `tests`; if the time is up before, for the first ones.
/// `ended` sees each row as its test ends, `retried` those of tests that are run again.
pub(crate) fn run(
    tests: &[&Test<'_>],
    settings: &Settings,
    ended: &dyn Fn(&Row),
    retried: &dyn Fn(&Row),
) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let (send, receive) = channel();
    let mut rows: Vec<_> = std::thread::scope(|scope| {
        for _ in 0..settings.jobs.min(tests.len()) {
            let send = send.clone();
            let next = &next;
            scope.spawn(move || {
                while let Some((index, test)) = take(tests, next, settings.end) {
                    let _ = send.send((index, one(test, settings)));
                }
            });
        }
        drop(send);
        receive.iter().inspect(|(_, row)| ended(row)).collect()
    });
    rows.sort_by_key(|(index, _)| *index);
    let mut rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    let failed = rows.iter_mut().zip(tests).filter(|(row, _)| row.has_failed());
    let one_again = |test| {
        let row = one(test, settings);
        retried(&row);
        row
    };
    failed.for_each(|(row, test)| again(row, settings.retries, || one_again(test)));
    rows
}

/// Runs a failed test again, as often as allowed. The row keeps the output of the first failure.
fn again(row: &mut Row, retries: u32, run: impl FnMut() -> Row) {
    let runs = std::iter::repeat_with(run).take(retries as usize);
    for next in runs {
        if next.outcome == Outcome::Passed {
            let first = core::mem::replace(row, next);
            row.flaky = first.outcome.reason().map(str::to_owned);
            row.output = first.output;
            return;
        }
    }
}

fn take<'a>(
    tests: &[&'a Test<'a>],
    next: &AtomicUsize,
    end: Option<Instant>,
) -> Option<(usize, &'a Test<'a>)> {
    if end.is_some_and(|end| Instant::now() >= end) {
        return None;
    }
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, *tests.get(index)?))
}

fn one(test: &Test<'_>, settings: &Settings) -> Row {
    if test.ignored {
        return Row::skipped(test, "marked as ignored");
    }
    let ended = match process::run(settings.command(test), settings.limit) {
        Ok(ended) => ended,
        Err(error) => {
            let outcome = Outcome::Failed { reason: format!("its process does not start: {error}") };
            return Row::new(test, outcome);
        }
    };
    let finding = settings.wrapper.as_ref().and_then(|wrapper| wrapper.finding(&ended));
    let outcome = match finding {
        Some(reason) => Outcome::Failed { reason },
        None => Outcome::of(&test.name, &ended, settings.limit),
    };
    let output = if matches!(outcome, Outcome::Failed { .. }) { ended.output } else { String::new() };
    Row { seconds: ended.time.as_secs_f64(), output, ..Row::new(test, outcome) }
}

impl Settings {
    fn command(&self, test: &Test<'_>) -> Command {
        let mut command = match &self.wrapper {
            Some(wrapper) => wrapper.command(&test.binary.file),
            None => Command::new(&test.binary.file),
        };
        command.args(["--exact", &test.name, "--nocapture"]).current_dir(&test.binary.folder);
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(outcome: Outcome, output: &str) -> Row {
        Row {
            suite: "a".to_owned(),
            test: "b".to_owned(),
            outcome,
            seconds: 1.0,
            output: output.to_owned(),
            flaky: None,
        }
    }

    fn failed(reason: &str) -> Row {
        ended(Outcome::Failed { reason: reason.to_owned() }, reason)
    }

    #[test]
    fn a_test_that_passes_when_run_again_is_flaky_and_keeps_its_failure() {
        let mut row = failed("first");
        let mut runs = vec![ended(Outcome::Passed, ""), failed("second")];
        again(&mut row, 5, || runs.pop().unwrap_or_else(|| failed("too often")));
        assert_eq!((row.flaky.as_deref(), row.output.as_str()), (Some("first"), "first"));
        assert!(!row.has_failed() && runs.is_empty());
    }

    #[test]
    fn a_test_that_fails_each_time_has_failed() {
        let (mut row, mut count) = (failed("first"), 0);
        again(&mut row, 2, || {
            count += 1;
            failed("again")
        });
        assert!(row.has_failed() && row.flaky.is_none());
        assert_eq!((count, row.output.as_str()), (2, "first"));
        again(&mut row, 0, || ended(Outcome::Passed, ""));
        assert!(row.has_failed());
    }
}
