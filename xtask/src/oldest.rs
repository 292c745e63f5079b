//! `cargo xtask oldest`: the libraries with the oldest compiler and the oldest direct dependencies
//! that their manifests allow.
//!
//! Cargo chooses the oldest versions in a copy of the libraries without what only tests need, since
//! packages of the tests ask for newer versions of the same dependencies. cuda-soft is none of
//! them: it needs the pinned compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, Cargo};

const LIBRARIES: [&str; 5] = ["sys", "nvrtc", "handles", "launch", "graph"];

/// Checks the libraries, and says with what.
pub(crate) fn run(cargo: &Cargo) -> Result<String> {
    let version = oldest_compiler(cargo)?;
    let toolchain = version.trim_end_matches(".0");
    let is_there = cargo::has_toolchain(toolchain);
    let command = || if is_there { cargo.of_toolchain(toolchain) } else { cargo.command() };
    let folder = cargo.target().join("oldest");
    let copy = Copy { from: cargo.root(), to: &std::path::absolute(folder.join("copy"))? };
    copy.make(cargo)?;

    let mut lock = command();
    lock.current_dir(copy.to).args(["generate-lockfile", "--quiet", "-Zdirect-minimal-versions"]);
    // The option is one of nightly cargo's. It only chooses versions here.
    cargo::succeed(lock.env("RUSTC_BOOTSTRAP", "1"))?;
    let mut check = command();
    check.current_dir(copy.to).args(["check", "--quiet", "--all-features", "--target-dir"]);
    cargo::succeed(check.arg(folder.join("target")))?;
    Ok(if is_there {
        format!("Rust {version}")
    } else {
        format!("not with Rust {version}; `rustup toolchain install {toolchain} --profile minimal` brings it")
    })
}

/// The version that the libraries ask for.
fn oldest_compiler(cargo: &Cargo) -> Result<String> {
    let packages = cargo.packages()?;
    let library = packages.into_iter().find(|package| package.name == "cuda-graph");
    library.and_then(|library| library.rust_version).context("cuda-graph has no rust-version")
}

/// A copy of the libraries.
struct Copy<'c> {
    from: &'c Path,
    to: &'c Path,
}

impl Copy<'_> {
    fn make(&self, cargo: &Cargo) -> Result<()> {
        if self.to.exists() {
            std::fs::remove_dir_all(self.to)?;
        }
        let listed = Command::new("git")
            .current_dir(cargo.root())
            .args(["ls-files", "--cached", "--others", "--exclude-standard", "--"])
            .args(LIBRARIES.map(|library| format!("crates/{library}")))
            .output()
            .context("git does not start")?;
        ensure!(listed.status.success(), "git does not list the files of the libraries");
        for path in String::from_utf8(listed.stdout)?.lines().map(PathBuf::from) {
            self.copy(&path)?;
        }
        let manifest = std::fs::read_to_string(self.from.join("Cargo.toml"))?;
        std::fs::write(self.to.join("Cargo.toml"), without_others(&manifest))?;
        Ok(())
    }

    fn copy(&self, path: &Path) -> Result<()> {
        let (from, to) = (self.from.join(path), self.to.join(path));
        std::fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
        if path.file_name().is_some_and(|name| name == "Cargo.toml") {
            std::fs::write(to, without_tests(&std::fs::read_to_string(from)?))?;
        } else if from.exists() {
            std::fs::copy(from, to)?;
        }
        Ok(())
    }
}

/// The workspace's manifest with the libraries alone.
fn without_others(manifest: &str) -> String {
    let others = ["default-members", "exclude", "cuda-soft", "cuda-tests"];
    let lines = manifest.lines().filter(|line| !others.iter().any(|other| line.starts_with(other)));
    let lines = lines.map(|line| if line.starts_with("members") { "members = [\"crates/*\"]" } else { line });
    without_tests(&lines.collect::<Vec<_>>().join("\n"))
}

/// A manifest without what is for builds, tests and examples.
fn without_tests(manifest: &str) -> String {
    let mut is_left_out = false;
    let lines = manifest.lines().filter(|line| {
        if line.starts_with('[') {
            is_left_out = ["[dev-dependencies", "[[example", "[profile", "[target.'cfg(loom)'"]
                .iter()
                .any(|section| line.starts_with(section));
        }
        !is_left_out
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_lose_what_tests_need() {
        let text = "[dependencies]\na = \"1\"\n\n[dev-dependencies]\nb = \"1\"\n\n[features]\nc = []\n";
        assert_eq!(without_tests(text), "[dependencies]\na = \"1\"\n\n[features]\nc = []\n");
        let text =
            "members = [\"crates/*\", \"xtask\"]\nexclude = [\"fuzz\"]\ncuda-soft = \"1\"\nlibc = \"1\"\n";
        assert_eq!(without_others(text), "members = [\"crates/*\"]\nlibc = \"1\"\n");
    }
}
