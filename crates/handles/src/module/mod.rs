//! Device code: images, libraries, their kernels and variables.

mod global;
mod image;
mod jit;
mod kernel;
mod kernel_attributes;
mod kernel_facts;
mod kernel_settings;
mod known_globals;
mod library;
mod linker;
#[cfg(feature = "nvrtc")]
pub mod nvrtc;
mod shared_library;

pub use image::Image;
pub use jit::LoadOptions;
pub use kernel::Kernel;
pub use kernel_facts::{KernelAttributes, Parameter};
pub use library::Library;
pub use linker::Linker;
