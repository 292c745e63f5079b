//! Code shared by the programs of this package: `xtask`, `bindings` and `runner`.

pub mod detect;
pub mod matrix;
pub mod pattern;
pub mod pypi;
pub mod runner;

use std::path::{Path, PathBuf};

/// The root of the workspace.
#[must_use]
pub fn workspace() -> PathBuf {
    // `cargo run` sets the variable; a target folder shared by two clones would make the
    // compiled-in path the wrong one.
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().unwrap_or(Path::new(".")).to_owned()
}
