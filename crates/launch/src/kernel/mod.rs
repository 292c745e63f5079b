//! Typed kernels: the macro `kernel!`, signatures, parameters and conditions.

#[allow(unreachable_pub)] // Public as `cuda_launch::condition`.
pub mod condition;
mod declare;
mod expansion;
pub(crate) mod fields;
mod kernel_set;
pub(crate) mod parameter;
pub(crate) mod signature;
pub(crate) mod typed;
pub(crate) mod variable;
