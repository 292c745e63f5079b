//! Runs the tests, several at a time.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use super::process;
use super::progress::Progress;
use super::suite::Test;
use super::{Outcome, Row, TestOptions};

/// One row for each test, in the order of `tests`.
pub(crate) fn run(tests: &[Test<'_>], options: &TestOptions) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let (send, receive) = channel();
    let progress = Progress::new(tests.len());
    let mut rows: Vec<_> = std::thread::scope(|scope| {
        for _ in 0..options.jobs().min(tests.len()) {
            let send = send.clone();
            let next = &next;
            scope.spawn(move || {
                while let Some((index, test)) = take(tests, next) {
                    let _ = send.send((index, one(test, options)));
                }
            });
        }
        drop(send);
        receive.iter().inspect(|(_, row)| progress.ended(row)).collect()
    });
    progress.finish();
    rows.sort_by_key(|(index, _)| *index);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn take<'a>(tests: &'a [Test<'a>], next: &AtomicUsize) -> Option<(usize, &'a Test<'a>)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, tests.get(index)?))
}

fn one(test: &Test<'_>, options: &TestOptions) -> Row {
    let suite = test.binary.name.clone();
    let name = test.name.clone();
    if test.ignored {
        let outcome = Outcome::Skipped { reason: "marked as ignored".to_owned() };
        return Row { suite, test: name, outcome, seconds: 0.0, output: String::new() };
    }
    let mut command = Command::new(&test.binary.file);
    command
        .args(["--exact", &test.name, "--nocapture"])
        .env("CUDA_TEST_DRIVER", options.driver.argument())
        .current_dir(&test.binary.folder);
    let limit = options.limit();
    let ended = match process::run(command, limit) {
        Ok(ended) => ended,
        Err(error) => {
            let outcome = Outcome::Failed { reason: format!("its process does not start: {error}") };
            return Row { suite, test: name, outcome, seconds: 0.0, output: String::new() };
        }
    };
    let outcome = Outcome::of(&test.name, &ended, limit);
    let output = if matches!(outcome, Outcome::Failed { .. }) { ended.output } else { String::new() };
    Row { suite, test: name, outcome, seconds: ended.time.as_secs_f64(), output }
}
