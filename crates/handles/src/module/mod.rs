//! Device code: images, libraries, their kernels and variables.

mod entry_wait;
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
mod load_waiting;
mod module_state;
#[cfg(feature = "nvrtc")]
pub mod nvrtc;
mod ptx_lexer;
mod shared_library;
mod wait_insertion;

pub use entry_wait::EntryWait;
pub use image::Image;
pub use jit::LoadOptions;
pub use kernel::Kernel;
pub use kernel_facts::{KernelAttributes, Parameter};
pub use library::Library;
pub use linker::Linker;
pub use load_waiting::WaitingLibrary;
