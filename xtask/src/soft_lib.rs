//! `cargo xtask soft-lib`: the software driver as a library under the driver's names.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cargo::Cargo;

/// The file, under the name by which most programs open the driver.
pub(crate) const NAME: &str = "libcuda.so.1";
/// Another name for it. It is a link, since a process that opens two files has two drivers.
const LINK: &str = "libcuda.so";

/// Builds the optimised library and says how to use it.
pub(crate) fn run(cargo: &Cargo, out: Option<PathBuf>) -> Result<()> {
    let folder = out.unwrap_or_else(|| cargo.target().join("soft-lib"));
    build(cargo, true, &folder)?;
    let folder = std::path::absolute(folder)?;
    println!("wrote {NAME} and {LINK}; use it: LD_LIBRARY_PATH={} program", folder.display());
    Ok(())
}

/// Builds the library and puts it into a folder.
pub(crate) fn build(cargo: &Cargo, optimised: bool, folder: &Path) -> Result<()> {
    let profile = if optimised { "release" } else { "dev" };
    let build = ["build", "--quiet", "--package", "cuda-soft", "--example", "cuda", "--profile", profile];
    cargo.run(&build)?;
    let built = cargo.target().join(if optimised { "release" } else { "debug" }).join("examples/libcuda.so");
    std::fs::create_dir_all(folder).with_context(|| format!("no folder {}", folder.display()))?;
    let (file, link) = (folder.join(NAME), folder.join(LINK));
    // A program that has the old file open keeps it.
    for old in [&file, &link] {
        if old.symlink_metadata().is_ok() {
            std::fs::remove_file(old)?;
        }
    }
    std::fs::copy(&built, &file)
        .with_context(|| format!("cannot copy {} to {}", built.display(), file.display()))?;
    std::os::unix::fs::symlink(NAME, link)?;
    Ok(())
}
