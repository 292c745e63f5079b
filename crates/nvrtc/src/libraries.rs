//! The search for other libraries: where the system's loader looks, in toolkits and in Python
//! environments.

use std::path::{Path, PathBuf};

use crate::search::{Environment, entries, folders};

/// The folders that the system's loader searches when it has no other word.
const USUAL: [&str; 8] = [
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib/wsl/lib",
    "usr/lib64",
    "usr/local/lib",
    "usr/lib",
    "lib64",
    "lib",
];

/// A library to look for.
#[derive(Clone, Copy, Debug)]
pub struct LibraryName {
    /// Its name.
    pub name: &'static str,
    /// The file's name up to the number of its major version, such as `libnccl.so.`.
    pub file: &'static str,
    /// The environment variable that names the library or its folder. No other place is searched
    /// then.
    pub variable: Option<&'static str>,
}

/// NVIDIA's library of collectives.
pub const NCCL: LibraryName = LibraryName { name: "NCCL", file: "libnccl.so.", variable: Some("CUDA_NCCL") };

impl LibraryName {
    /// The first file in the folders of [`places`](Self::places), or what the environment names.
    #[must_use]
    pub fn find(&self, environment: &impl Environment) -> Option<PathBuf> {
        if let Some(named) = self.named(environment) {
            return Some(named).filter(|path| path.is_file());
        }
        self.places(environment).into_iter().find_map(|folder| self.within(&folder))
    }

    /// The library that the environment variable names, or the newest in the folder that it names.
    #[must_use]
    pub fn named(&self, environment: &impl Environment) -> Option<PathBuf> {
        let named = PathBuf::from(environment.variable(self.variable?)?);
        Some(self.within(&named).unwrap_or(named))
    }

    /// The folders to search, in their order.
    #[must_use]
    pub fn places(&self, environment: &impl Environment) -> Vec<PathBuf> {
        of_the_loader(environment).into_iter().chain(folders(environment)).collect()
    }

    /// The newest one in a folder.
    #[must_use]
    pub fn within(&self, folder: &Path) -> Option<PathBuf> {
        let major = |path: &PathBuf| -> Option<u32> {
            path.file_name()?.to_str()?.strip_prefix(self.file)?.parse().ok()
        };
        entries(folder).into_iter().filter(|path| major(path).is_some()).max_by_key(major)
    }
}

/// The folders that the system's loader searches: those of the environment, of its configuration,
/// and the usual ones.
#[must_use]
pub fn of_the_loader(environment: &impl Environment) -> Vec<PathBuf> {
    let root = environment.root();
    let configured = entries(&root.join("etc/ld.so.conf.d")).into_iter().flat_map(|file| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().map(str::trim).filter_map(|line| line.strip_prefix('/'));
        lines.map(|folder| root.join(folder)).collect::<Vec<_>>()
    });
    let usual = USUAL.into_iter().map(|folder| root.join(folder));
    environment.listed("LD_LIBRARY_PATH").into_iter().chain(configured).chain(usual).collect()
}
