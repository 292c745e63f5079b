//! `cargo xtask cudarc`: runs programs that also use cudarc, on the software driver built as a
//! library.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::cargo::{self, Cargo};
use crate::soft_lib;

const PACKAGE: &str = "cuda-tests-cudarc";

/// The measurements beside other projects.
const PEERS: &str = "cuda-tests-peers";

/// Builds the software driver as a library, and runs the tests, the example and a quick measurement
/// with it in place of the system's driver.
pub(crate) fn run(cargo: &Cargo) -> Result<()> {
    let folder = cargo.target().join("driver");
    soft_lib::build(cargo, false, &folder)?;
    cargo::succeed(beside(cargo, &folder, PACKAGE, &["test", "--", "--test-threads", "1"]))?;
    cargo::succeed(beside(cargo, &folder, PACKAGE, &["run", "--example", "beside_cudarc"]))?;
    let mut peers =
        beside(cargo, &folder, PEERS, &["run", "--", "--smoke-test", "--quick", "--part", "paths"]);
    peers.args(["--filter", "launch", "--driver"]).arg(folder.join(soft_lib::NAME));
    cargo::succeed(peers)
}

fn beside(cargo: &Cargo, folder: &Path, package: &str, arguments: &[&str]) -> Command {
    let mut command = cargo.command();
    command.arg(arguments[0]).args(["--quiet", "--package", package]).args(&arguments[1..]);
    command.env("LD_LIBRARY_PATH", folder).env("CUDA_SYS_DRIVER", folder.join(soft_lib::NAME));
    command
}
