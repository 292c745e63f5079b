//! Libraries that some tests use, and skip without.

use std::path::{Path, PathBuf};

use cuda_nvrtc::internal::{Environment, folders};

use super::files;

/// A library to look for.
struct Wanted {
    name: &'static str,
    /// The file's name up to the number of its major version.
    file: &'static str,
    /// The environment variable that names the library or its folder. No other place is searched
    /// then.
    variable: Option<&'static str>,
}

const WANTED: [Wanted; 4] = [
    Wanted { name: "NVRTC", file: "libnvrtc.so.", variable: Some("CUDA_NVRTC") },
    Wanted { name: "cuBLAS", file: "libcublas.so.", variable: Some("CUDA_CUBLAS") },
    Wanted { name: "NCCL", file: "libnccl.so.", variable: Some("CUDA_NCCL") },
    Wanted { name: "Vulkan", file: "libvulkan.so.", variable: None },
];

/// A library: where it is, or that it is nowhere.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FoundLibrary {
    /// Its name.
    pub name: &'static str,
    /// The file.
    pub file: Option<PathBuf>,
    /// The environment variable that can name it.
    #[serde(skip)]
    pub variable: Option<&'static str>,
}

pub(super) fn all(environment: &impl Environment) -> Vec<FoundLibrary> {
    let find = |wanted: &Wanted| FoundLibrary {
        name: wanted.name,
        file: wanted.find(environment),
        variable: wanted.variable,
    };
    WANTED.iter().map(find).collect()
}

impl Wanted {
    /// Searches where the environment says, where the loader searches, in toolkits and in Python
    /// environments.
    fn find(&self, environment: &impl Environment) -> Option<PathBuf> {
        if let Some(named) = self.variable.and_then(|name| environment.variable(name)).map(PathBuf::from) {
            return self.within(&named).or(Some(named)).filter(|path| path.is_file());
        }
        let mut places = files::of_the_loader(environment).into_iter().chain(folders(environment));
        places.find_map(|folder| self.within(&folder))
    }

    /// The newest one in a folder.
    fn within(&self, folder: &Path) -> Option<PathBuf> {
        let major = |path: &PathBuf| -> Option<u32> {
            path.file_name()?.to_str()?.strip_prefix(self.file)?.parse().ok()
        };
        files::entries(folder).into_iter().filter(|path| major(path).is_some()).max_by_key(major)
    }
}
