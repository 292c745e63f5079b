//! Device code: images, libraries, their kernels and variables.

mod global;
mod globals;
mod image;
mod jit;
mod kernel;
mod library;
mod linker;
#[cfg(feature = "nvrtc")]
pub mod nvrtc;
mod shared_library;

pub use image::Image;
pub use jit::LoadOptions;
pub use kernel::{Kernel, KernelAttributes, Parameter};
pub use library::Library;
pub use linker::Linker;
