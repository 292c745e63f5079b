//! Folders in which drivers, tools and libraries lie.

use std::path::{Path, PathBuf};

use cuda_nvrtc::internal::Environment;

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

/// The entries of a folder, sorted by name; empty if it does not exist.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).into_iter().flatten();
    let mut found: Vec<_> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    found
}

/// Whether the file's name starts with this text.
pub(super) fn starts_with(path: &Path, start: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
}

/// The folders that an environment variable lists, as `PATH` does.
pub(super) fn listed(environment: &impl Environment, variable: &str) -> Vec<PathBuf> {
    let value = environment.variable(variable).unwrap_or_default();
    std::env::split_paths(&value).filter(|folder| !folder.as_os_str().is_empty()).collect()
}

/// The folders that the system's loader searches: those of the environment, of its configuration,
/// and the usual ones.
pub(super) fn of_the_loader(environment: &impl Environment) -> Vec<PathBuf> {
    let root = environment.root();
    let configured = entries(&root.join("etc/ld.so.conf.d")).into_iter().flat_map(|file| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().map(str::trim).filter_map(|line| line.strip_prefix('/'));
        lines.map(|folder| root.join(folder)).collect::<Vec<_>>()
    });
    let usual = USUAL.into_iter().map(|folder| root.join(folder));
    listed(environment, "LD_LIBRARY_PATH").into_iter().chain(configured).chain(usual).collect()
}

/// The folders of CUDA's toolkits: those of the environment, then all that are installed side by
/// side.
pub(super) fn toolkits(environment: &impl Environment) -> Vec<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].into_iter();
    let named = named.filter_map(|name| environment.variable(name)).map(PathBuf::from);
    let places = ["usr/local", "opt"].into_iter().flat_map(|place| entries(&environment.root().join(place)));
    named.chain(places.filter(|path| starts_with(path, "cuda"))).collect()
}
