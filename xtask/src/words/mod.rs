//! `cargo xtask words`: what is checked of comments and Markdown.
//!
//! - [`width`]: no comment and no line of Markdown is wider than 100 columns;
//! - [`spelling`]: words are spelt right, by the program `typos`;
//! - [`paths`]: the files that the documents name exist.
//!
//! Generated files are not checked; [`files`] says which those are.

mod files;
mod paths;
mod spelling;
mod width;

use anyhow::{Result, ensure};

use crate::cargo::Cargo;
use files::Files;

/// Runs the three checks and prints every finding before it fails.
pub(crate) fn run(cargo: &Cargo) -> Result<()> {
    let files = Files::tracked(cargo.root())?;
    let mut findings = width::check(&files);
    findings.extend(paths::check(&files));
    for finding in &findings {
        println!("{finding}");
    }
    let spelling = spelling::check(&files, &cargo.target());
    ensure!(findings.is_empty(), "{} lines are wrong; they are listed above", findings.len());
    spelling
}
