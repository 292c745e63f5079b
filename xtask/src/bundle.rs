//! `cargo xtask bundle`: what a machine needs that has a GPU and no Rust.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use xtask::runner::Suite;

use crate::build::Build;
use crate::cargo::Cargo;

/// A bundle is carried about, so it stays small.
const MOST: u64 = 60 << 20;

/// Builds everything and fills `bundle`.
pub(crate) fn run(cargo: &Cargo) -> Result<()> {
    let target = cargo.target().join("bundle");
    let build = Build { asan: false, bundle: Some(&target) };
    let suite = build.suite(cargo)?;
    let runner = build.program(cargo, "xtask", "runner")?;
    let folder = cargo.root().join("bundle");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(folder.join("tests"))?;
    let bytes = fill(&folder, suite, &runner)?;
    ensure!(bytes <= MOST, "{} has {} MiB; {} are allowed", folder.display(), bytes >> 20, MOST >> 20);
    println!("wrote {}, {:.1} MiB; there: ./runner test --driver system", folder.display(), mib(bytes));
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn fill(folder: &Path, mut suite: Suite, runner: &Path) -> Result<u64> {
    let mut bytes = copy(runner, folder, Path::new("runner"))?;
    bytes += copy(&suite.demo, folder, Path::new("heat"))?;
    suite.demo = PathBuf::from("heat");
    bytes += copy(&suite.bench, folder, Path::new("bench"))?;
    suite.bench = PathBuf::from("bench");
    for binary in &mut suite.binaries {
        let name = Path::new("tests").join(binary.name.replace("::", "-"));
        bytes += copy(&binary.file, folder, &name)?;
        binary.file = name;
        binary.folder = PathBuf::from(".");
    }
    suite.save(folder)?;
    Ok(bytes)
}

fn copy(from: &Path, folder: &Path, to: &Path) -> Result<u64> {
    let to = folder.join(to);
    ensure!(!to.exists(), "two programs would be called {}", to.display());
    std::fs::copy(from, &to).with_context(|| format!("{} cannot be copied", from.display()))
}
