//! `cargo xtask ci`: everything that must pass before a change is taken. Steps that fail soonest
//! come first.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use xtask::runner::{self, TestOptions};

use crate::build::{self, Build};
use crate::cargo::{self, Cargo, Package};
use crate::instructions::{self, Checked};
use crate::{cudarc, deny, doc_tests, documentation, kernels, oldest, words};

enum Ended {
    Passed(String),
    Skipped(String),
}

type Step = (&'static str, fn(&Cargo) -> Result<Ended>);

const STEPS: &[Step] = &[
    ("format", |cargo| passed(cargo.run(&["fmt", "--all", "--check"]))),
    ("words", |cargo| passed(words::run(cargo))),
    ("dependencies", |cargo| deny::run(cargo).map(Ended::Passed)),
    ("clippy", clippy),
    ("kernels", |cargo| passed(kernels::run(cargo.root(), true))),
    ("bindings", |cargo| passed(bindgen(cargo, true))),
    ("tests", |cargo| test(cargo, false, &[])),
    ("tests, newest compiler", newest_compiler),
    ("tests, oldest driver", |cargo| test(cargo, false, &["--soft-version", "12.2", "--filter", "tests::"])),
    ("tests, shaped", |cargo| test(cargo, false, &["--shape", "auto", "--filter", "tests::graph"])),
    ("runner's tests", |cargo| passed(cargo.run(&["test", "--quiet", "--package", "xtask"]))),
    ("sweep, optimised", |cargo| {
        passed(cargo.run(&["test", "--quiet", "--release", "--package", "cuda-soft", "--test", "sweep"]))
    }),
    ("tests, compiled kernels", compiled_kernels),
    ("examples", examples),
    ("programs", programs),
    ("beside cudarc", |cargo| passed(cudarc::run(cargo))),
    ("instructions", instructions),
    ("documentation", |cargo| documentation::run(cargo).map(Ended::Passed)),
    ("models", models),
    ("tests, sanitised", sanitised),
    ("crates alone", alone),
    ("oldest versions", |cargo| oldest::run(cargo).map(Ended::Passed)),
    ("packages", package),
];

/// Runs the steps up to the first that fails, and returns the exit code.
pub(crate) fn run(cargo: &Cargo) -> Result<u8> {
    let mut table = Vec::new();
    for (name, step) in STEPS {
        println!("\n==== {name}");
        let start = Instant::now();
        let outcome = step(cargo);
        let (word, note) = match &outcome {
            Ok(Ended::Passed(note)) => ("passed", note.clone()),
            Ok(Ended::Skipped(reason)) => ("skipped", reason.clone()),
            Err(error) => ("failed", format!("{error:#}")),
        };
        table.push((name, word, start.elapsed(), note));
        if outcome.is_err() {
            break;
        }
    }
    print(&table);
    Ok(u8::from(table.iter().any(|(_, word, ..)| *word == "failed")))
}

fn print(table: &[(&&str, &str, Duration, String)]) {
    println!("\n{:20} {:8} {:>9}", "step", "outcome", "time");
    for (name, word, time, note) in table {
        println!("{name:20} {word:8} {:7.1} s  {note}", time.as_secs_f64());
    }
    let left = STEPS.len() - table.len();
    if left > 0 {
        println!("{left} steps were not reached");
    }
}

fn passed(outcome: Result<()>) -> Result<Ended> {
    outcome.map(|()| Ended::Passed(String::new()))
}

fn clippy(cargo: &Cargo) -> Result<Ended> {
    passed(cargo.run(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))
}

/// Runs the generator, a program of its own because it takes long to build.
pub(crate) fn bindgen(cargo: &Cargo, check: bool) -> Result<()> {
    let mut arguments =
        vec!["run", "--quiet", "--package", "xtask", "--features", "bindgen", "--bin", "bindings", "--"];
    arguments.extend(check.then_some("--check"));
    cargo.run(&arguments)
}

/// The defaults of the command line.
#[derive(Parser)]
struct Defaults {
    #[command(flatten)]
    options: TestOptions,
}

/// Runs the tests that compile CUDA C++ with the newest compiler.
fn newest_compiler(cargo: &Cargo) -> Result<Ended> {
    let compiler = kernels::newest_compiler(&cargo.target())?;
    test(cargo, false, &["--filter", "nvrtc", "--nvrtc", &compiler.to_string_lossy()])
}

/// Runs tests with the oldest compiler for CUDA C++, unless the environment names another.
fn test(cargo: &Cargo, asan: bool, more: &[&str]) -> Result<Ended> {
    let arguments = [&["test", "--driver", "soft", "--retries", "1"], more].concat();
    let mut options = Defaults::try_parse_from(arguments)?.options;
    if options.nvrtc.is_none() {
        options.nvrtc = Some(kernels::oldest_compiler(&cargo.target())?);
    }
    let suite = Build { asan, gpu: false, bundle: None }.suite(cargo)?;
    judge(runner::test(&suite, &options)?)
}

fn judge(report: runner::Report) -> Result<Ended> {
    report.print();
    anyhow::ensure!(report.is_good(), "{}", report.counts());
    Ok(Ended::Passed([report.counts(), report.flaky()].join(" ").trim_end().to_owned()))
}

fn examples(cargo: &Cargo) -> Result<Ended> {
    let rows = doc_tests::run(cargo)?;
    judge(runner::Report { driver: String::new(), devices: Vec::new(), rows })
}

/// Runs the examples that are programs: they compare themselves with plain Rust, and draw.
fn programs(cargo: &Cargo) -> Result<Ended> {
    let examples = build::examples(cargo)?;
    anyhow::ensure!(!examples.is_empty(), "there are none");
    for example in &examples {
        let picture = cargo.target().join(example.file_name().context("an example has no name")?);
        let mut command = std::process::Command::new(example);
        command.args(["--driver", "soft", "--svg"]).arg(picture.with_extension("svg"));
        command.arg("--dot").arg(picture.with_extension("dot"));
        command.env("CUDA_NVRTC", kernels::oldest_compiler(&cargo.target())?);
        cargo::succeed(command)?;
    }
    Ok(Ended::Passed(format!("{} programs", examples.len())))
}

/// Runs the tests of PTX with every kernel compiled before its first thread.
fn compiled_kernels(cargo: &Cargo) -> Result<Ended> {
    let mut command = cargo.command();
    command.args([
        "test",
        "--quiet",
        "--release",
        "--package",
        "cuda-soft",
        "--features",
        "jit",
        "--lib",
        "ptx",
    ]);
    command.env("CUDA_SOFT_JIT", "always");
    passed(cargo::succeed(command))
}

fn instructions(cargo: &Cargo) -> Result<Ended> {
    Ok(match instructions::check(cargo)? {
        Checked::Passed(note) => Ended::Passed(note),
        Checked::Skipped(reason) => Ended::Skipped(reason),
    })
}

fn sanitised(cargo: &Cargo) -> Result<Ended> {
    if !cargo::has_nightly() {
        return Ok(Ended::Skipped("no nightly toolchain here".to_owned()));
    }
    test(cargo, true, &[])
}

/// Runs loom's models, with the lock-free parts compiled against loom's atomics.
fn models(cargo: &Cargo) -> Result<Ended> {
    let mut command = cargo.command();
    command.args(["test", "--package", "cuda-handles", "--release", "--test", "loom_*", "--target-dir"]);
    command.arg(cargo.target().join("loom")).env("RUSTFLAGS", "--cfg loom");
    passed(cargo::succeed(command))
}

/// Checks each package alone: with the features that it requests, not those that its neighbours
/// enable.
fn alone(cargo: &Cargo) -> Result<Ended> {
    let packages = cargo.packages()?;
    for Package { name, .. } in &packages {
        cargo.run(&["check", "--quiet", "--package", name])?;
    }
    Ok(Ended::Passed(format!("{} packages", packages.len())))
}

/// Packages without lock files: for unpublished packages, cargo would look for their neighbours on
/// the public registry.
fn package(cargo: &Cargo) -> Result<Ended> {
    let private = [
        "xtask",
        "cuda-tests",
        "cuda-tests-bench",
        "cuda-tests-cudarc",
        "cuda-tests-nccl",
        "cuda-tests-peers",
        "cuda-guide",
    ];
    let exclude = private.map(|name| ["--exclude", name]);
    let arguments =
        ["package", "--workspace", "--no-verify", "--exclude-lockfile", "--allow-dirty", "--quiet"];
    passed(cargo.run(&[arguments.as_slice(), exclude.as_flattened()].concat()))
}
