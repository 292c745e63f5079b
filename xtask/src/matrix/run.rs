//! Runs the rows, one after the other.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::axes::Axis;
use super::condition::Place;
use super::declaration::Declaration;
use super::expand::Planned;
use super::options::MatrixOptions;
use super::progress::Progress;
use super::report::{self, MatrixReport, RowReport, TestReport};
use crate::detect::Machine;
use crate::runner::options::jobs;
use crate::runner::schedule::{self, Settings};
use crate::runner::suite::Test;
use crate::runner::wrapper::Wrapper;
use crate::runner::{Driver, Row, Suite};

/// The exit code of compute-sanitizer if it has found something.
const FOUND: i32 = 86;

/// Runs all rows. With a folder for reports, these are written after each.
pub(super) fn all(
    suite: &Suite,
    declaration: &Declaration,
    machine: Machine,
    rows: &[Planned],
    options: &MatrixOptions,
) -> Result<MatrixReport> {
    let tests = suite.list(&options.filter)?;
    let progress = Progress::new(rows.len());
    let mut report = MatrixReport { machine, rows: Vec::new(), stale: Vec::new() };
    for planned in rows {
        let run = Run { declaration, machine: &report.machine, planned, options };
        let done = run.row(&tests, &progress)?;
        report.stale.extend(report::stale(declaration, &run.place(), &done, !options.filter.is_empty()));
        report.rows.push(done);
        if let Some(folder) = &options.report_dir {
            report.write(folder)?;
        }
    }
    progress.finish();
    Ok(report)
}

/// One row, about to run.
struct Run<'a> {
    declaration: &'a Declaration,
    machine: &'a Machine,
    planned: &'a Planned,
    options: &'a MatrixOptions,
}

impl Run<'_> {
    fn row(&self, tests: &[Test<'_>], progress: &Progress) -> Result<RowReport> {
        let mut done = RowReport::new(self.planned);
        if done.skipped.is_some() {
            progress.row_ended(&done);
            return Ok(done);
        }
        let start = Instant::now();
        let place = self.place();
        let chosen: Vec<_> = tests.iter().filter(|test| self.has(&test.full_name())).collect();
        let reason = |test: &Test<'_>| self.declaration.skip_reason(&test.full_name(), &place);
        let (left_out, runs): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|test| reason(test).is_some());
        progress.row_starts(&self.planned.name, runs.len());
        let judged = |row: Row| TestReport { expected: self.expected(&row, &place), row };
        let ended = |row: &Row| progress.test_ended(row, self.expected(row, &place).is_some());
        let rows = schedule::run(&runs, &self.settings()?, &ended);
        done.tests = rows.into_iter().map(judged).collect();
        let skipped = left_out.iter().map(|test| Row::skipped(test, reason(test).unwrap_or_default()));
        done.tests.extend(skipped.map(|row| TestReport { row, expected: None }));
        done.seconds = start.elapsed().as_secs_f64();
        progress.row_ended(&done);
        Ok(done)
    }

    fn place(&self) -> Place<'_> {
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
        let Self { options, planned, .. } = self;
        let driver = self.driver();
        let (wrapper, patience) = self.tool()?;
        let mut environment = planned.axes.environment(planned.device, patience);
        environment.push(("CUDA_TEST_DRIVER", Some(driver.argument())));
        environment.extend(options.nvrtc.iter().map(|path| ("CUDA_NVRTC", Some(path.into()))));
        environment.extend(driver.library_path().map(|(name, value)| (name, Some(value))));
        Ok(Settings {
            environment,
            wrapper,
            limit: Duration::from_secs(options.timeout.max(1)) * patience,
            jobs: jobs(options.jobs, &driver),
            retries: options.retries,
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
        let exit_code = FOUND.to_string();
        let usual = ["--tool", name, "--target-processes", "all", "--require-cuda-init", "no"];
        let usual = usual.into_iter().chain(["--error-exitcode", &exit_code]);
        let arguments = usual.chain(tool.arguments.iter().map(String::as_str));
        let arguments = arguments.map(Into::into).collect();
        Ok((Some(Wrapper { program: program.into(), arguments, found: FOUND }), tool.patience.max(1)))
    }
}
