//! `cargo xtask bundle`: tests, demo and benchmark for a machine with a GPU and without Rust.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use xtask::matrix::FILE;
use xtask::pypi::Wheel;
use xtask::runner::{Peers, Suite};

use crate::build::{Build, matrix};
use crate::cargo::Cargo;

/// The limit for a bundle, which is copied between machines.
const MOST: u64 = 96 << 20;

/// The device runtime, with which a kernel that launches graphs is linked. It must not be newer
/// than the oldest driver that the bundle is taken to. Nothing else in this project uses it.
const DEVICE_RUNTIME: Wheel = Wheel { package: "nvidia-cuda-runtime", version: "13.0.96" };

/// Builds everything and fills `bundle`.
pub(crate) fn run(cargo: &Cargo) -> Result<()> {
    let target = cargo.target().join("bundle");
    let build = Build { asan: false, gpu: true, bundle: Some(&target) };
    let mut suite = build.suite(cargo)?.without_empty()?;
    let runner = build.program(cargo, "xtask", "runner")?;
    let peers = build.program(cargo, "cuda-tests-peers", "peers")?;
    let folder = cargo.root().join("bundle");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(folder.join("tests"))?;
    let mut bytes = fill(&folder, &mut suite, &runner)?;
    bytes += copy(&matrix(cargo), &folder, Path::new(FILE))?;
    match device_runtime(&cargo.target(), &folder) {
        Ok(more) => bytes += more,
        Err(error) => {
            println!("without the device runtime, so that the tests that need it are skipped: {error:#}")
        }
    }
    ensure!(bytes <= MOST, "{} has {} MiB; {} are allowed", folder.display(), bytes >> 20, MOST >> 20);
    if bytes + peers.metadata()?.len() <= MOST {
        bytes += add_peers(cargo, &folder, &mut suite, &peers)?;
    } else {
        println!("without the measurements beside other projects, which would make it too large");
    }
    suite.save(&folder)?;
    println!("wrote {}, {:.1} MiB; there: ./runner test-gpu", folder.display(), mib(bytes));
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn fill(folder: &Path, suite: &mut Suite, runner: &Path) -> Result<u64> {
    let mut bytes = copy(runner, folder, Path::new("runner"))?;
    bytes += copy(&suite.demo, folder, Path::new("heat"))?;
    suite.demo = PathBuf::from("heat");
    bytes += copy(&suite.bench.program, folder, Path::new("bench"))?;
    suite.bench.program = PathBuf::from("bench");
    for binary in &mut suite.binaries {
        let name = Path::new("tests").join(binary.name.replace("::", "-"));
        bytes += copy(&binary.file, folder, &name)?;
        binary.file = name;
        binary.folder = PathBuf::from(".");
    }
    Ok(bytes)
}

/// Adds the benchmark beside other projects, and its script.
fn add_peers(cargo: &Cargo, folder: &Path, suite: &mut Suite, built: &Path) -> Result<u64> {
    let (program, script) = (PathBuf::from("peers"), PathBuf::from("peers.py"));
    let bytes =
        copy(built, folder, &program)? + copy(&cargo.root().join("tests/peers/peers.py"), folder, &script)?;
    suite.bench.peers = Some(Peers { program, script, library: None });
    Ok(bytes)
}

fn device_runtime(target: &Path, folder: &Path) -> Result<u64> {
    let name = "libcudadevrt.a";
    let archive = DEVICE_RUNTIME.unpacked(target)?.join("nvidia/cu13/lib").join(name);
    copy(&archive, folder, &Path::new("tests").join(name))
}

fn copy(from: &Path, folder: &Path, to: &Path) -> Result<u64> {
    let to = folder.join(to);
    ensure!(!to.exists(), "two programs would be called {}", to.display());
    std::fs::copy(from, &to).with_context(|| format!("{} cannot be copied", from.display()))
}
