//! The tracked text files of the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A text file that people write.
pub(super) struct File {
    /// Relative to the workspace, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

/// All files of a checkout.
pub(super) struct Files {
    root: PathBuf,
    /// Paths of all files, generated ones and binary ones too.
    all: Vec<String>,
    written: Vec<File>,
}

impl Files {
    /// The files that git tracks or would track.
    pub(super) fn tracked(root: &Path) -> Result<Self> {
        let mut git = Command::new("git");
        git.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]).current_dir(root);
        let output = git.output().context("git does not start")?;
        ensure!(output.status.success(), "`git ls-files` ended with {}", output.status);
        let listed = String::from_utf8(output.stdout)?;
        let mut all: Vec<String> = listed.split_terminator('\0').map(str::to_owned).collect();
        all.retain(|path| root.join(path).is_file());
        let read = |path: &String| {
            let text = std::fs::read_to_string(root.join(path)).ok()?;
            (!is_generated(&text)).then(|| File { path: path.clone(), text })
        };
        let written = all.iter().filter_map(read).collect();
        Ok(Self { root: root.to_owned(), all, written })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The paths of all files.
    pub(super) fn all(&self) -> &[String] {
        &self.all
    }

    /// The text files that no program has made.
    pub(super) fn written(&self) -> &[File] {
        &self.written
    }
}

/// A generator says so in the first line of each file that it makes.
fn is_generated(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.contains("Do not edit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_tells_generated_files() {
        assert!(is_generated("// Made by `cargo xtask bindgen` from the headers. Do not edit.\n"));
        assert!(!is_generated("//! A module.\n// Do not edit.\n"));
    }
}
