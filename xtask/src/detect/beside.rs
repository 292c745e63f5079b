//! Drivers that are installed side by side: compatibility packages, and other libraries in the
//! loader's search path.

use std::path::{Path, PathBuf};

use cuda_nvrtc::internal::{Environment, entries, of_the_loader};

use super::files;

/// All libraries of a driver, each file once, under the name by which programs open it if it has
/// that one.
pub(super) fn libraries(environment: &impl Environment) -> Vec<PathBuf> {
    let packages = files::toolkits(environment).into_iter().map(|toolkit| toolkit.join("compat"));
    let folders = packages.chain(of_the_loader(environment));
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    for library in folders.flat_map(|folder| entries(&folder)).filter(|path| is_driver(path)) {
        let Ok(file) = library.canonicalize() else { continue };
        if found.iter().all(|(known, _)| *known != file) {
            found.push((file, library));
        }
    }
    found.into_iter().map(|(_, library)| library).collect()
}

/// `libcuda.so.1`, `libcuda.so.580.65.06`. Sorted by name, the first comes first. The plain
/// `libcuda.so` is for linkers, and may be a stub.
fn is_driver(path: &Path) -> bool {
    files::starts_with(path, "libcuda.so.")
}
