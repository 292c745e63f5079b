//! The workspace's runner: `cargo xtask --help`.

mod build;
mod bundle;
mod cargo;
mod ci;
mod cudarc;
mod deny;
mod doc_tests;
mod documentation;
mod faults;
mod fuzz;
mod guide;
mod instructions;
mod kernels;
mod oldest;
mod semver;
mod soft_lib;
mod stats;
mod suites;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::detect::ask;
use xtask::matrix::{self, FolderLock, MatrixOptions};
use xtask::runner::{self, Bench, BenchOptions, DemoOptions, Driver, Peers, Report, TestOptions};

use build::Build;
use cargo::Cargo;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Runs the demo, the tests and the generators of the workspace")]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the demo: heat on a plate, as one CUDA graph
    Demo(DemoOptions),
    /// Run all tests, each in its own process, then the examples of the documentation
    Test {
        #[command(flatten)]
        options: TestOptions,
        /// Build with the nightly toolchain's AddressSanitizer
        #[arg(long)]
        asan: bool,
    },
    /// Run the tests on a GPU, in the rows of tests/matrix.toml
    TestGpu(MatrixOptions),
    /// Load a driver and print what it says, for the search for drivers
    #[command(name = ask::COMMAND, hide = true)]
    AskDriver {
        #[arg(value_parser = Driver::parse_for_tests)]
        driver: Driver,
    },
    /// Measure the library's own time beside the raw driver's, optimised
    Bench(BenchOptions),
    /// Count the instructions of the hot paths, by callgrind, and compare them with the recorded
    /// ceilings
    Instructions(instructions::Options),
    /// Put the test binaries, the demo, the measurements and a runner into ./bundle, for a machine
    /// without Rust
    Bundle,
    /// Make cuda-sys's bindings from CUDA's headers
    Bindgen {
        /// Write nothing; fail where the files differ
        #[arg(long)]
        check: bool,
    },
    /// Compile the kernels of the tests, of the graph crate and of its examples to PTX
    Kernels {
        /// Write nothing; fail where the files differ
        #[arg(long)]
        check: bool,
    },
    /// Run the tests and the example that share a process with cudarc, on the software driver as a
    /// library
    Cudarc,
    /// Build the software driver as a library, libcuda.so.1, for programs that open the driver by
    /// its name
    SoftLib {
        /// The folder to put it into; target/soft-lib by default
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Run the tests of other projects, cudarc and cuda-python, on the software driver as a library
    Suites(suites::Options),
    /// Check licences, duplicates, sources and advisories of the dependencies, by cargo-deny
    Deny,
    /// Check the libraries with the oldest compiler and the oldest dependencies that they allow
    Oldest,
    /// Compare the public interfaces with those of the last release, by cargo-semver-checks
    Semver,
    /// Run the fault sweeps in full, and list the public functions whose driver calls were made to
    /// fail
    Faults(TestOptions),
    /// Run the fuzz targets of ./fuzz, by cargo-fuzz and the nightly toolchain
    Fuzz(fuzz::Options),
    /// Check comments and Markdown: width, spelling, and the names of files in documents
    Words,
    /// Make the documentation of the libraries, follow its links, and check the names in the guide
    Doc,
    /// Make the documentation and the guide as a book; needs mdBook
    Book,
    /// Print the size of each package and the functions of more than 60 lines
    Stats {
        /// Another checkout of the workspace to read
        checkout: Option<PathBuf>,
    },
    /// Do all that must pass before a change is taken
    Ci,
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
    let cargo = Cargo::new(xtask::workspace());
    match task {
        Task::Demo(options) => demo(&cargo, &options),
        Task::Test { options, asan } => test(&cargo, &options, asan),
        Task::TestGpu(options) => {
            let build = Build { asan: false, gpu: true, bundle: None };
            let _lock = if options.list { None } else { Some(FolderLock::take(&cargo.target())?) };
            matrix::run(&options, &build::matrix(&cargo), || build.suite(&cargo))
        }
        Task::AskDriver { driver } => ask::answer(&driver).map(|()| 0),
        Task::Bench(options) => bench(&cargo, options),
        Task::Instructions(options) => instructions::run(&cargo, &options).map(|()| 0),
        Task::Bundle => bundle::run(&cargo).map(|()| 0),
        Task::Bindgen { check } => ci::bindgen(&cargo, check).map(|()| 0),
        Task::Kernels { check } => kernels::run(cargo.root(), check).map(|()| 0),
        Task::Cudarc => cudarc::run(&cargo).map(|()| 0),
        Task::SoftLib { out } => soft_lib::run(&cargo, out).map(|()| 0),
        Task::Suites(options) => suites::run(&cargo, &options),
        Task::Deny => said(deny::run(&cargo)),
        Task::Oldest => said(oldest::run(&cargo)),
        Task::Semver => said(semver::run(&cargo)),
        Task::Faults(options) => faults::run(&cargo, options),
        Task::Fuzz(options) => fuzz::run(&cargo, &options).map(|()| 0),
        Task::Words => words::run(&cargo).map(|()| 0),
        Task::Doc => {
            said(documentation::run(&cargo).map(|found| format!("{found}, and every link leads somewhere")))
        }
        Task::Book => said(guide::book::run(&cargo).map(|page| page.display().to_string())),
        Task::Stats { checkout } => stats::run(&cargo, checkout.as_deref()).map(|()| 0),
        Task::Ci => ci::run(&cargo),
    }
}

/// Prints what was found, if nothing is wrong.
fn said(outcome: Result<String>) -> Result<u8> {
    println!("{}", outcome?);
    Ok(0)
}

fn demo(cargo: &Cargo, options: &DemoOptions) -> Result<u8> {
    let program = build::demo(cargo)?;
    runner::demo(&program, &cargo.target().join("demo"), options)
}

fn bench(cargo: &Cargo, options: BenchOptions) -> Result<u8> {
    let commit = cargo.commit();
    if !options.peers {
        return Bench { commit, ..Bench::new(build::bench(cargo)?) }.run(&options);
    }
    let script = cargo.root().join("tests/peers/peers.py");
    let mut peers = Peers { program: build::peers(cargo)?, script, library: None };
    if options.driver.as_deref() == Some("soft") {
        let folder = std::path::absolute(cargo.target())?.join("driver");
        soft_lib::build(cargo, false, &folder)?;
        peers.library = Some(folder.join(soft_lib::NAME));
    }
    Bench { commit, peers: Some(peers), ..Bench::new(PathBuf::new()) }.run(&options)
}

fn test(cargo: &Cargo, options: &TestOptions, asan: bool) -> Result<u8> {
    let suite = Build { asan, gpu: false, bundle: None }.suite(cargo)?;
    let mut report = runner::test(&suite, options)?;
    // A sanitised build has no examples, and a filter is for a single test.
    if !asan && options.filter.is_empty() {
        report.rows.extend(doc_tests::run(cargo)?);
    }
    finish(&report, options)
}

fn finish(report: &Report, options: &TestOptions) -> Result<u8> {
    if let Some(path) = &options.report {
        report.write(path)?;
    }
    report.print();
    Ok(u8::from(!report.is_good()))
}
