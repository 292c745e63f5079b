//! `cargo xtask semver`: the public interfaces beside those of the last release, by
//! cargo-semver-checks.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, Cargo};

/// The packages that are released.
const PACKAGES: [&str; 6] =
    ["cuda-sys", "cuda-nvrtc", "cuda-handles", "cuda-launch", "cuda-graph", "cuda-soft"];

/// Compares with the last tag, and says with which.
pub(crate) fn run(cargo: &Cargo) -> Result<String> {
    let Some(tag) = last_tag(cargo)? else {
        return Ok("there is no release to compare with".to_owned());
    };
    let installed = Command::new("cargo-semver-checks").arg("--version").output();
    ensure!(
        installed.is_ok_and(|output| output.status.success()),
        "there is no cargo-semver-checks; `cargo install cargo-semver-checks --locked` brings it"
    );
    let mut command = cargo.command();
    command.args(["semver-checks", "--baseline-rev", &tag]);
    command.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    cargo::succeed(command)?;
    Ok(format!("the versions fit the changes since {tag}"))
}

/// The last tag before this commit.
fn last_tag(cargo: &Cargo) -> Result<Option<String>> {
    let found = Command::new("git")
        .current_dir(cargo.root())
        .args(["describe", "--tags", "--abbrev=0", "--match", "v*"])
        .output()
        .context("git does not start")?;
    let tag = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    Ok((found.status.success() && !tag.is_empty()).then_some(tag))
}
