//! Calling cargo.

use std::borrow::BorrowMut;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The workspace, and the cargo that builds it.
pub(crate) struct Cargo {
    root: PathBuf,
}

/// A package of the workspace.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) rust_version: Option<String>,
    pub(crate) targets: Vec<Target>,
}

/// A library, a program, a test or an example of a package.
#[derive(Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    kind: Vec<String>,
}

impl Target {
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|found| found == kind)
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

impl Cargo {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The target folder. Cargo runs in the root, and so reads a relative path from there.
    pub(crate) fn target(&self) -> PathBuf {
        self.root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
    }

    /// A cargo of the pinned toolchain.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root);
        command
    }

    /// The commit of the checkout, with a mark if it was changed since; `None` outside of git.
    pub(crate) fn commit(&self) -> Option<String> {
        let mut command = Command::new("git");
        command
            .args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
            .current_dir(&self.root);
        let output = command.output().ok().filter(|output| output.status.success())?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// A cargo of the nightly toolchain. `who` needs it, as in "AddressSanitizer needs".
    pub(crate) fn nightly(&self, who: &str) -> Result<Command> {
        ensure!(has_nightly(), "{who} the nightly toolchain; `rustup toolchain install nightly` brings it");
        Ok(self.of_toolchain("nightly"))
    }

    /// A cargo of an installed toolchain.
    pub(crate) fn of_toolchain(&self, name: &str) -> Command {
        let mut command = Command::new("rustup");
        command.args(["run", name, "cargo"]).current_dir(&self.root);
        // The runner's own toolchain would win.
        command.env_remove("RUSTC").env_remove("RUSTDOC").env_remove("RUSTUP_TOOLCHAIN");
        command
    }

    /// The packages of the workspace.
    pub(crate) fn packages(&self) -> Result<Vec<Package>> {
        let output = self.command().args(["metadata", "--no-deps", "--format-version", "1"]).output()?;
        let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo gives no metadata")?;
        Ok(metadata.packages)
    }

    /// Runs cargo to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut command = self.command();
        command.args(arguments);
        succeed(command)
    }
}

pub(crate) fn has_nightly() -> bool {
    has_toolchain("nightly")
}

/// Whether a toolchain is installed whose name begins so.
pub(crate) fn has_toolchain(name: &str) -> bool {
    let listed = Command::new("rustup").args(["toolchain", "list"]).output();
    listed.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout).lines().any(|line| line.starts_with(name))
    })
}

pub(crate) fn succeed(mut command: impl BorrowMut<Command>) -> Result<()> {
    let command = command.borrow_mut();
    let name = format!("{command:?}");
    let status = command.status().with_context(|| format!("{name} does not start"))?;
    ensure!(status.success(), "{name} ended with {status}");
    Ok(())
}
