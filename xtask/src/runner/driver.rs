//! The choice of a driver.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// A driver as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Driver {
    /// The system's driver if it has a device, else the software driver. For the demo.
    Auto,
    /// The software driver.
    Soft,
    /// NVIDIA's driver, where the system finds it.
    System,
    /// A driver library.
    File(PathBuf),
}

impl Driver {
    /// Reads a name. A path becomes absolute, since tests run in other folders.
    ///
    /// # Errors
    /// The current folder is not known.
    pub fn parse(name: &str) -> std::io::Result<Self> {
        Ok(match name {
            "auto" => Self::Auto,
            "soft" => Self::Soft,
            "system" => Self::System,
            path => Self::File(std::path::absolute(path)?),
        })
    }

    /// As [`parse`](Self::parse), for tests, which name their driver.
    ///
    /// # Errors
    /// `auto`, which only the demo takes.
    pub fn parse_for_tests(name: &str) -> Result<Self, String> {
        match Self::parse(name) {
            Ok(Self::Auto) => {
                Err("tests need a driver that is named: soft, system or the path of a library".to_owned())
            }
            Ok(driver) => Ok(driver),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The variable by which a library finds its other parts, which lie beside it.
    pub(crate) fn library_path(&self) -> Option<(&'static str, OsString)> {
        const VARIABLE: &str = "LD_LIBRARY_PATH";
        let Self::File(path) = self else { return None };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty())?;
        let known = std::env::var_os(VARIABLE).unwrap_or_default();
        let all = [folder.to_owned()].into_iter().chain(std::env::split_paths(&known));
        Some((VARIABLE, std::env::join_paths(all).ok()?))
    }

    /// The argument that programs of the workspace take.
    #[must_use]
    pub fn argument(&self) -> OsString {
        match self {
            Self::Auto => OsStr::new("auto").to_owned(),
            Self::Soft => OsStr::new("soft").to_owned(),
            Self::System => OsStr::new("system").to_owned(),
            Self::File(path) => path.clone().into_os_string(),
        }
    }
}
