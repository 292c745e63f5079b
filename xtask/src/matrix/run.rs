//! Runs the rows, one after the other.

use std::cell::RefCell;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::axes::Axis;
use super::condition::Place;
use super::declaration::Declaration;
use super::expand::Planned;
use super::options::MatrixOptions;
use super::origin::{self, Origin};
use super::private::hidden;
use super::progress::Progress;
use super::report::{Earlier, MatrixReport, RowReport, TestReport};
use crate::detect::Machine;
use crate::runner::options::jobs;
use crate::runner::schedule::{self, Settings};
use crate::runner::suite::Test;
use crate::runner::wrapper::Wrapper;
use crate::runner::{Driver, Row, Suite};

/// The exit code of compute-sanitizer if it has found something.
const FOUND: i32 = 86;

/// How often the report is written while a row runs: whoever stops the run loses no more.
const PERIOD: Duration = Duration::from_secs(10);

/// Runs all rows, except for the tests that an earlier report has.
pub(super) fn all(
    suite: &Suite,
    declaration: &Declaration,
    machine: Machine,
    rows: &[Planned],
    earlier: Option<Earlier>,
    options: &MatrixOptions,
) -> Result<MatrixReport> {
    let end = options.stop_after.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let tests = suite.list(&[])?;
    let names: Vec<String> = tests.iter().map(Test::full_name).collect();
    let unmatched = declaration.unmatched(&names);
    let (origin, known) = (Origin::of(suite), machine.clone());
    let mut report = MatrixReport { origin, machine, rows: Vec::new(), unmatched };
    if let Some(earlier) = earlier {
        earlier.go_on(&mut report)?;
    }
    // The report has all rows from the start, so that one of a run that was stopped says what it
    // lacks.
    let plans: Vec<_> = rows
        .iter()
        .map(|planned| {
            let run = Run { declaration, machine: &known, planned, options, end };
            let (at, todo) = run.prepare(&tests, &mut report);
            (run, at, todo)
        })
        .collect();
    let report = RefCell::new(report);
    write(&report, options)?;
    let progress = Progress::new(rows.len());
    for (run, at, todo) in &plans {
        run.row(todo, *at, &report, &progress)?;
        write(&report, options)?;
    }
    progress.finish();
    Ok(report.into_inner())
}

fn write(report: &RefCell<MatrixReport>, options: &MatrixOptions) -> Result<()> {
    let Some(folder) = &options.report_dir else { return Ok(()) };
    report.borrow_mut().origin.ended = origin::now();
    report.borrow().write(folder)
}

/// One row, about to run.
struct Run<'a> {
    declaration: &'a Declaration,
    machine: &'a Machine,
    planned: &'a Planned,
    options: &'a MatrixOptions,
    /// When to start no more tests.
    end: Option<Instant>,
}

impl<'a> Run<'a> {
    /// Puts the row into the report, with what an earlier run has found. Returns its place there,
    /// and the tests to run.
    fn prepare<'t>(&self, tests: &'t [Test<'t>], report: &mut MatrixReport) -> (usize, Vec<&'t Test<'t>>) {
        let mut row = RowReport { filter: self.options.filter.clone(), ..RowReport::new(self.planned) };
        // A report that was read has names without private folders.
        let name = hidden(&row.name);
        let earlier = report.rows.iter().position(|row| row.name == name);
        let has_run = |at: usize| report.rows.get(at).is_some_and(|row| !row.tests.is_empty());
        // An earlier run could run the row, in part at least.
        if let Some(at) = earlier.filter(|at| row.skipped.is_some() && has_run(*at)) {
            return (at, Vec::new());
        }
        if let Some(earlier) = earlier.and_then(|at| report.rows.get_mut(at)) {
            self.take_over(earlier, &mut row);
        }
        let todo = if row.skipped.is_none() { self.choose(tests, &mut row) } else { Vec::new() };
        let at = earlier.unwrap_or(report.rows.len());
        match report.rows.get_mut(at) {
            Some(place) => *place = row,
            None => report.rows.push(row),
        }
        (at, todo)
    }

    /// Takes what an earlier run has found over into a row, whose filter is this run's.
    fn take_over(&self, earlier: &mut RowReport, row: &mut RowReport) {
        row.tests = std::mem::take(&mut earlier.tests);
        row.seconds = earlier.seconds;
        let was_whole = earlier.filter.is_empty() && (earlier.left > 0 || !row.tests.is_empty());
        row.filter.append(&mut earlier.filter);
        row.filter.sort();
        row.filter.dedup();
        if was_whole || self.options.filter.is_empty() {
            row.filter.clear();
        }
    }

    /// The tests to run now, of those that the row lacks. Counts what is left, and notes what is
    /// skipped.
    fn choose<'t>(&self, tests: &'t [Test<'t>], row: &mut RowReport) -> Vec<&'t Test<'t>> {
        let (mut todo, place) = (Vec::new(), self.place());
        let known: HashSet<String> = row.tests.iter().map(|test| test.row.full_name()).collect();
        for test in tests {
            let name = test.full_name();
            if known.contains(&name) || !self.has(&name) || !is_chosen(&row.filter, &name) {
                continue;
            }
            if let Some(reason) = self.declaration.skip_reason(&name, &place) {
                row.tests.push(TestReport { row: Row::skipped(test, reason), expected: None });
                continue;
            }
            row.left += 1;
            todo.extend(is_chosen(&self.options.filter, &name).then_some(test));
        }
        todo
    }

    /// Runs the tests, and puts what becomes of them into the row of the report.
    fn row(
        &self,
        todo: &[&Test<'_>],
        at: usize,
        report: &RefCell<MatrixReport>,
        progress: &Progress,
    ) -> Result<()> {
        let change = |change: &mut dyn FnMut(&mut RowReport)| {
            report.borrow_mut().rows.get_mut(at).into_iter().for_each(change);
        };
        let (start, place) = (Instant::now(), self.place());
        if self.planned.skipped.is_none() && !todo.is_empty() && !self.is_over() {
            progress.row_starts(&self.planned.name, todo.len());
            let judged = |row: Row| TestReport { expected: self.expected(&row, &place), row };
            let before = report.borrow().rows.get(at).map_or((0, 0), |row| (row.tests.len(), row.left));
            let written = RefCell::new(Instant::now());
            let ended = |row: &Row| {
                progress.test_ended(row, self.expected(row, &place).is_some());
                // What is to run again has no outcome yet.
                if row.has_failed() && self.options.retries > 0 {
                    return;
                }
                change(&mut |of| {
                    of.tests.push(judged(row.clone()));
                    of.left = of.left.saturating_sub(1);
                });
                if written.borrow().elapsed() >= PERIOD {
                    // The write after the row tells of what goes wrong.
                    let _ = write(report, self.options);
                    *written.borrow_mut() = Instant::now();
                }
            };
            let rows = schedule::run(todo, &self.settings()?, &ended, &|row| progress.again(row));
            // In the order of the tests, and with what came of running them again.
            change(&mut |of| {
                let (known, left) = before;
                of.tests.truncate(known);
                of.tests.extend(rows.iter().cloned().map(judged));
                of.left = left.saturating_sub(rows.len());
            });
        }
        change(&mut |of| {
            of.seconds += start.elapsed().as_secs_f64();
            of.find_stale(self.declaration, &place);
            progress.row_ended(of);
        });
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    fn place(&self) -> Place<'a> {
        Place::new(self.machine, &self.planned.axes, self.planned.driver, self.planned.device)
    }

    /// Whether the row has a test.
    fn has(&self, test: &str) -> bool {
        let groups = self.planned.groups.iter().filter_map(|group| self.declaration.groups.get(group));
        self.declaration.always.has(test) || groups.into_iter().any(|group| group.has(test))
    }

    /// The reason why a failure is expected.
    fn expected(&self, row: &Row, place: &Place<'_>) -> Option<String> {
        let declared = self.declaration.expected(row, place).filter(|_| row.has_failed());
        declared.map(|expected| expected.reason.clone())
    }

    fn settings(&self) -> Result<Settings> {
        let Self { options, planned, end, .. } = self;
        let driver = self.driver();
        let (wrapper, patience) = self.tool()?;
        let mut environment = planned.axes.environment(planned.device, patience);
        environment.push(("CUDA_TEST_DRIVER", Some(driver.argument())));
        environment.extend(options.nvrtc.iter().map(|path| ("CUDA_NVRTC", Some(path.into()))));
        environment.extend(driver.library_path().map(|(name, value)| (name, Some(value))));
        Ok(Settings {
            environment,
            wrapper,
            limit: Duration::from_secs(options.timeout) * patience,
            jobs: jobs(options.jobs, &driver),
            retries: options.retries,
            end: *end,
        })
    }

    /// The driver: the one of the command line, or one beside it.
    fn driver(&self) -> Driver {
        match self.machine.drivers.get(self.planned.driver).filter(|_| self.planned.driver > 0) {
            Some(found) => Driver::File(found.name.clone().into()),
            None => self.options.driver.clone(),
        }
    }

    /// The program that watches the tests with its arguments, and how much slower they are.
    fn tool(&self) -> Result<(Option<Wrapper>, u32)> {
        let name = self.planned.axes.get(Axis::Tool);
        if name == Axis::Tool.usual() {
            return Ok((None, 1));
        }
        let tool = self.declaration.tools.get(name).with_context(|| format!("{name} is not declared"))?;
        let program = self.machine.sanitizer.as_ref().context("there is no compute-sanitizer")?;
        // Tests run in other folders.
        let program = std::path::absolute(program)?;
        let exit_code = FOUND.to_string();
        let usual = ["--tool", name, "--target-processes", "all", "--require-cuda-init", "no"];
        let usual = usual.into_iter().chain(["--error-exitcode", &exit_code]);
        let arguments = usual.chain(tool.arguments.iter().map(String::as_str));
        let arguments = arguments.map(Into::into).collect();
        Ok((Some(Wrapper { program: program.into(), arguments, found: FOUND }), tool.patience.max(1)))
    }
}

/// Whether a test's name has one of the texts.
fn is_chosen(filter: &[String], test: &str) -> bool {
    filter.is_empty() || filter.iter().any(|text| test.contains(text))
}
