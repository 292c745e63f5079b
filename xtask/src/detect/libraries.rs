//! Libraries that some tests use, and skip without.

use std::path::PathBuf;

use cuda_nvrtc::internal::{Environment, LibraryName, NCCL};

const WANTED: [LibraryName; 4] = [
    LibraryName { name: "NVRTC", file: "libnvrtc.so.", variable: Some("CUDA_NVRTC") },
    LibraryName { name: "cuBLAS", file: "libcublas.so.", variable: Some("CUDA_CUBLAS") },
    NCCL,
    LibraryName { name: "Vulkan", file: "libvulkan.so.", variable: None },
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
    let find = |wanted: &LibraryName| FoundLibrary {
        name: wanted.name,
        file: wanted.find(environment),
        variable: wanted.variable,
    };
    WANTED.iter().map(find).collect()
}
