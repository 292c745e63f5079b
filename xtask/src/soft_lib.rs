//! `cargo xtask soft-lib`: the software driver as a library under the driver's names.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cargo::Cargo;

/// The file names under which programs open the driver.
pub(crate) const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// Builds the optimised library and says how to use it.
pub(crate) fn run(cargo: &Cargo, out: Option<PathBuf>) -> Result<()> {
    let folder = out.unwrap_or_else(|| cargo.target().join("soft-lib"));
    build(cargo, true, &folder)?;
    let folder = std::path::absolute(folder)?;
    println!("wrote {}; use it: LD_LIBRARY_PATH={} program", NAMES.join(" and "), folder.display());
    Ok(())
}

/// Builds the library and puts it into a folder.
pub(crate) fn build(cargo: &Cargo, optimised: bool, folder: &Path) -> Result<()> {
    let profile = if optimised { "release" } else { "dev" };
    let build = ["build", "--quiet", "--package", "cuda-soft", "--example", "cuda", "--profile", profile];
    cargo.run(&build)?;
    let built = cargo.target().join(if optimised { "release" } else { "debug" }).join("examples/libcuda.so");
    std::fs::create_dir_all(folder).with_context(|| format!("no folder {}", folder.display()))?;
    for name in NAMES {
        let to = folder.join(name);
        std::fs::copy(&built, &to)
            .with_context(|| format!("cannot copy {} to {}", built.display(), to.display()))?;
    }
    Ok(())
}
