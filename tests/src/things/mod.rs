//! Things that tests use: kernels, gates, closures, threads, semaphores of Vulkan.

pub mod closure;
mod gate;
mod kernels;
#[cfg(unix)]
mod vulkan;

pub use gate::{Gate, in_callback};
pub use kernels::{SMALL, UNKNOWN_INSTRUCTION, VARIABLES, add_to, kernel};
#[cfg(unix)]
pub use vulkan::VulkanSemaphore;
