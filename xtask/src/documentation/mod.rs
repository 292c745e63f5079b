//! The documentation of the libraries: it is made anew, holds the libraries alone, and no link in
//! it is dead.
//!
//! rustdoc checks links to items. It does not check links that are written as paths, and leaves a
//! link to a crate that it has not documented without a target. With `--no-deps`, cargo documents
//! the libraries in any order, so that a link upwards may come first; hence this documents the
//! dependencies, too.

mod pages;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::cargo::{self, Cargo};
use crate::guide;
pub(crate) use pages::{Pages, resolved};

/// Makes the documentation and checks it and the names in the guide; says how much there is.
pub(crate) fn run(cargo: &Cargo) -> Result<String> {
    let folder = folder(cargo);
    for (name, _) in documentable(cargo)? {
        let stale = folder.join(name);
        if stale.exists() {
            std::fs::remove_dir_all(stale)?;
        }
    }
    let mut command = cargo.command();
    command.args(["doc", "--workspace", "--all-features", "--quiet"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    cargo::succeed(command)?;
    let libraries = libraries(cargo, &folder)?;
    let pages = Pages::read(&folder)?;
    let dead = pages.dead_links(&libraries);
    for link in &dead {
        println!("{link}");
    }
    ensure!(dead.is_empty(), "{} links of the documentation are dead; they are listed above", dead.len());
    let named = guide::check(cargo.root(), &pages, &libraries)?;
    Ok(format!("{} libraries, {named} names in the guide", libraries.len()))
}

/// The folder of the documentation.
pub(crate) fn folder(cargo: &Cargo) -> PathBuf {
    cargo.target().join("doc")
}

/// The libraries and programs of the workspace by the names of their folders, and whether each is
/// a library for others: the harness, the programs and the runner are not to be found by a search
/// of the documentation.
fn documentable(cargo: &Cargo) -> Result<Vec<(String, bool)>> {
    let crates = cargo.root().join("crates");
    let mut found = Vec::new();
    for package in cargo.packages()? {
        let is_public = package.manifest_path.starts_with(&crates);
        for target in package.targets {
            let is_library = target.is("lib");
            if is_library || target.is("bin") {
                found.push((target.name.replace('-', "_"), is_public && is_library));
            }
        }
    }
    Ok(found)
}

/// The libraries, if they alone are documented.
pub(crate) fn libraries(cargo: &Cargo, folder: &Path) -> Result<BTreeSet<String>> {
    let mut libraries = BTreeSet::new();
    for (name, is_library) in documentable(cargo)? {
        let is_documented = folder.join(&name).join("all.html").exists();
        ensure!(is_documented || !is_library, "there is no documentation of {name}");
        ensure!(!is_documented || is_library, "{name} has documentation; set `doc = false` for it");
        libraries.extend(is_library.then_some(name));
    }
    Ok(libraries)
}
