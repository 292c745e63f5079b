//! NVIDIA's compute-sanitizer: its program.

use std::path::{Path, PathBuf};

use cuda_nvrtc::internal::{Environment, folders};

use super::files;

/// The environment variable that names the program or its folder. No other place is searched then.
pub(crate) const VARIABLE: &str = "CUDA_SANITIZER";
const NAME: &str = "compute-sanitizer";

/// Searches where the environment says, in the search path, in toolkits and in Python environments.
pub(super) fn find(environment: &impl Environment) -> Option<PathBuf> {
    if let Some(named) = environment.variable(VARIABLE).map(PathBuf::from) {
        return within(&named).or(Some(named)).filter(|path| path.is_file());
    }
    let in_path = environment.listed("PATH");
    let toolkits = files::toolkits(environment).into_iter();
    let in_toolkits = toolkits.flat_map(|toolkit| ["bin", NAME].map(|folder| toolkit.join(folder)));
    let in_wheels = folders(environment);
    in_path.into_iter().chain(in_toolkits).chain(in_wheels).find_map(|folder| within(&folder))
}

fn within(folder: &Path) -> Option<PathBuf> {
    Some(folder.join(NAME)).filter(|path| path.is_file())
}
