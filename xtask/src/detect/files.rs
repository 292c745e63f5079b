//! Folders in which drivers and tools lie.

use std::path::{Path, PathBuf};

use cuda_nvrtc::internal::{Environment, entries};

/// Whether the file's name starts with this text.
pub(super) fn starts_with(path: &Path, start: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
}

/// The folders of CUDA's toolkits: those of the environment, then all that are installed side by
/// side.
pub(super) fn toolkits(environment: &impl Environment) -> Vec<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].into_iter();
    let named = named.filter_map(|name| environment.variable(name)).map(PathBuf::from);
    let places = ["usr/local", "opt"].into_iter().flat_map(|place| entries(&environment.root().join(place)));
    named.chain(places.filter(|path| starts_with(path, "cuda"))).collect()
}
