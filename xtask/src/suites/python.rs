//! The suites of cuda-python: which packages, which tests, and the environment they run in.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::runner::Row;

use super::{Options, Place, pytest};
use crate::cargo;

/// What is installed, all from PyPI and all pinned: the suites are those of these versions.
const PACKAGES: [&str; 11] = [
    "cuda-core==1.1.0",
    "cuda-bindings==13.3.1",
    "cuda-pathfinder==1.9.1",
    "nvidia-cuda-nvrtc==13.0.88",
    "nvidia-nvvm==13.0.88",
    "numpy==2.4.6",
    "pytest==9.2.0",
    "pluggy==1.7.0",
    "iniconfig==2.3.1",
    "packaging==26.4",
    "pygments==2.21.0",
];

const REPOSITORY: &str = "https://github.com/NVIDIA/cuda-python";
/// Shared by the tests of all packages.
const HELPERS: &str = "cuda_python_test_helpers";

/// The tests of one package of cuda-python.
pub(super) struct Suite {
    pub(super) name: &'static str,
    /// The tag of the release that [`PACKAGES`] names.
    tag: &'static str,
    /// The folder with the tests.
    tests: &'static str,
    /// Files and folders of it that do not test the driver.
    left_out: &'static [&'static str],
    /// The plugins that its tests need.
    pub(super) plugins: &'static [&'static str],
}

pub(super) const SUITES: [Suite; 2] = [
    Suite {
        name: "cuda-bindings",
        tag: "v13.3.1",
        tests: "cuda_bindings/tests",
        // Bindings of other libraries, and tests that compile Cython.
        left_out: &[
            "cudla",
            "cython",
            "nvml",
            "test_cudart.py",
            "test_cufile.py",
            "test_examples.py",
            "test_interoperability.py",
            "test_nvfatbin.py",
            "test_nvjitlink.py",
            "test_nvvm.py",
        ],
        plugins: &["record_outcomes"],
    },
    Suite {
        name: "cuda-core",
        tag: "cuda-core-v1.1.0",
        tests: "cuda_core/tests",
        // NVML, whole programs that need other packages, and tests that compile Cython. In
        // `test_workerpool.py` a worker that ends early leaves a pool of processes waiting.
        left_out: &[
            "cython",
            "example_tests",
            "memory_ipc/test_workerpool.py",
            "system",
            "test_build_hooks.py",
        ],
        plugins: &["record_outcomes", "driver_alone"],
    },
];

const PLUGINS: [(&str, &str); 2] = [
    ("record_outcomes.py", include_str!("record_outcomes.py")),
    ("driver_alone.py", include_str!("driver_alone.py")),
];

/// Runs the files of a suite that `options` select.
pub(super) fn run(suite: &Suite, place: &Place, options: &Options) -> Result<Vec<Row>> {
    // Names of files are not known before the tests are there, so a filter for another suite must
    // not fetch them.
    let others = SUITES.iter().map(|suite| suite.name).chain([super::cudarc::SUITE]);
    if others.filter(|other| *other != suite.name).any(|other| options.filter.as_deref() == Some(other)) {
        return Ok(Vec::new());
    }
    let source = match &options.source {
        Some(folder) => std::path::absolute(folder)?,
        None => clone(suite, &place.folder)?,
    };
    let tests = source.join(suite.tests);
    ensure!(tests.is_dir(), "{} has no folder {}", source.display(), suite.tests);
    let mut files = Vec::new();
    find_files(suite, &tests, &tests, &mut files)?;
    files.sort();
    files.retain(|file| options.selects(&format!("{} {file}", suite.name)));
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let runner = pytest::Runner {
        python: environment(&place.folder)?,
        plugins: plugins(&place.folder)?,
        libraries: place.libraries()?,
        outcomes: place.folder.join("outcomes"),
        tests,
    };
    let mut rows = Vec::new();
    for file in &files {
        println!("{} {file}", suite.name);
        rows.extend(runner.run(suite, file)?);
    }
    Ok(rows)
}

/// The folder of the released tests, which git fetches if they are not there yet.
fn clone(suite: &Suite, folder: &Path) -> Result<PathBuf> {
    let checkout = folder.join(format!("cuda-python-{}", suite.tag));
    if checkout.join(suite.tests).is_dir() {
        return Ok(checkout);
    }
    if checkout.exists() {
        std::fs::remove_dir_all(&checkout)?;
    }
    let mut clone = Command::new("git");
    clone.args(["clone", "--quiet", "--depth", "1", "--filter=blob:none", "--sparse"]);
    clone.args(["--branch", suite.tag, REPOSITORY]).arg(&checkout);
    cargo::succeed(clone).context("the tests cannot be fetched; --source names a checkout that has them")?;
    let mut checkout_tests = Command::new("git");
    checkout_tests.arg("-C").arg(&checkout).args(["sparse-checkout", "set", suite.tests, HELPERS]);
    cargo::succeed(checkout_tests)?;
    Ok(checkout)
}

/// The names of the test files below `folder`, relative to `tests`.
fn find_files(suite: &Suite, tests: &Path, folder: &Path, found: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let relative = path.strip_prefix(tests)?.to_string_lossy().into_owned();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if suite.left_out.contains(&relative.as_str()) {
            continue;
        }
        if path.is_dir() {
            find_files(suite, tests, &path, found)?;
        } else if name.starts_with("test_") && name.ends_with(".py") {
            found.push(relative);
        }
    }
    Ok(())
}

/// The interpreter of a virtual environment with [`PACKAGES`].
fn environment(folder: &Path) -> Result<PathBuf> {
    let environment = folder.join("python");
    let python = environment.join("bin/python");
    let complete = environment.join(".complete");
    let wanted = PACKAGES.join("\n");
    if std::fs::read_to_string(&complete).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]).arg(&environment);
    cargo::succeed(create)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    install.arg("--only-binary=:all:").args(PACKAGES);
    cargo::succeed(install)?;
    std::fs::write(complete, wanted)?;
    Ok(python)
}

fn plugins(folder: &Path) -> Result<PathBuf> {
    let plugins = folder.join("plugins");
    std::fs::create_dir_all(&plugins)?;
    for (name, text) in PLUGINS {
        std::fs::write(plugins.join(name), text)?;
    }
    Ok(plugins)
}
