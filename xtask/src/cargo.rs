//! Calling cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The workspace and the cargo that it is built with.
pub(crate) struct Cargo {
    root: PathBuf,
}

impl Cargo {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that build products go to.
    pub(crate) fn target(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.root.join("target"), PathBuf::from)
    }

    /// A cargo of the pinned toolchain.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root);
        command
    }

    /// A cargo of the nightly toolchain.
    pub(crate) fn nightly(&self) -> Result<Command> {
        ensure!(
            has_nightly(),
            "AddressSanitizer needs the nightly toolchain; `rustup toolchain install nightly` brings it"
        );
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo"]).current_dir(&self.root);
        Ok(command)
    }

    /// Runs cargo to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut command = self.command();
        command.args(arguments);
        succeed(command)
    }
}

pub(crate) fn has_nightly() -> bool {
    let listed = Command::new("rustup").args(["toolchain", "list"]).output();
    listed.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout).lines().any(|line| line.starts_with("nightly"))
    })
}

pub(crate) fn succeed(mut command: Command) -> Result<()> {
    let name = format!("{command:?}");
    let status = command.status().with_context(|| format!("{name} does not start"))?;
    ensure!(status.success(), "{name} ended with {status}");
    Ok(())
}
