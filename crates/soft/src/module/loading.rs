//! Lazy or eager loading, which programs choose by an environment variable.

use std::sync::LazyLock;

/// Whether `CUDA_MODULE_LOADING` asks for eager loading. As with the real driver, lazy loading is
/// the default and the value is read once.
pub(crate) fn is_eager() -> bool {
    static EAGER: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("CUDA_MODULE_LOADING").is_some_and(|mode| mode == "EAGER"));
    *EAGER
}
