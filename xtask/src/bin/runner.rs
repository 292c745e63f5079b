//! The runner of a bundle: tests, demo and measurements on a machine without Rust.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use xtask::detect::ask;
use xtask::matrix::{self, FILE, MatrixOptions};
use xtask::runner::{self, BenchOptions, DemoOptions, Driver, Suite, TestOptions};

#[derive(Parser)]
#[command(name = "runner", about = "Runs the tests, the demo and the measurements of the bundle it lies in")]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the demo: heat on a plate, as one CUDA graph
    Demo {
        #[command(flatten)]
        options: DemoOptions,
        /// The folder for the pictures
        #[arg(long, value_name = "FOLDER", default_value = "demo")]
        out: PathBuf,
    },
    /// Run all tests, each in its own process, and list what became of each
    Test(TestOptions),
    /// Run the tests on a GPU, in the rows of matrix.toml
    TestGpu(MatrixOptions),
    /// Load a driver and print what it says, for the search for drivers
    #[command(name = ask::COMMAND, hide = true)]
    AskDriver {
        #[arg(value_parser = Driver::parse_for_tests)]
        driver: Driver,
    },
    /// Measure the library's own time beside the raw driver's
    Bench(BenchOptions),
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<u8> {
    let program = std::env::current_exe().context("the runner does not know where it lies")?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let suite = || Suite::load(folder);
    match task {
        Task::AskDriver { driver } => ask::answer(&driver).map(|()| 0),
        Task::TestGpu(options) => matrix::run(&options, &folder.join(FILE), suite),
        Task::Demo { options, out } => runner::demo(&suite()?.demo, &out, &options),
        Task::Bench(options) => suite()?.bench.run(&options),
        Task::Test(options) => {
            let report = runner::test(&suite()?, &options)?;
            report.print_rows();
            if let Some(path) = &options.report {
                report.write(path)?;
            }
            report.print();
            Ok(u8::from(!report.is_good()))
        }
    }
}
