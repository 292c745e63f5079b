//! `cargo xtask cudarc`: runs programs that also use cudarc, on the software driver built as a
//! library.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::{self, Cargo};

const PACKAGE: &str = "cuda-tests-cudarc";

/// The file names under which programs open the driver.
const NAMES: [&str; 2] = ["libcuda.so", "libcuda.so.1"];

/// Builds the software driver as a library, and runs the tests and the example with it in place of
/// the system's driver.
pub(crate) fn run(cargo: &Cargo) -> Result<()> {
    let folder = driver(cargo)?;
    cargo::succeed(beside(cargo, &folder, &["test", "--", "--test-threads", "1"]))?;
    cargo::succeed(beside(cargo, &folder, &["run", "--example", "beside_cudarc"]))
}

/// A folder with the software driver under the driver's names.
fn driver(cargo: &Cargo) -> Result<PathBuf> {
    cargo.run(&["build", "--quiet", "--package", "cuda-soft", "--example", "cuda"])?;
    let built = cargo.target().join("debug/examples/libcuda.so");
    let folder = cargo.target().join("driver");
    std::fs::create_dir_all(&folder)?;
    for name in NAMES {
        std::fs::copy(&built, folder.join(name)).with_context(|| format!("no {}", built.display()))?;
    }
    Ok(folder)
}

fn beside(cargo: &Cargo, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = cargo.command();
    command.arg(arguments[0]).args(["--quiet", "--package", PACKAGE]).args(&arguments[1..]);
    command.env("LD_LIBRARY_PATH", folder).env("CUDA_SYS_DRIVER", folder.join(NAMES[0]));
    command
}
