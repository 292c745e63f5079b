//! Code: images, the modules and libraries made from them, their kernels, functions and variables.

pub(crate) mod image;
mod kernel_code;
mod library;
mod loaded;
pub(crate) mod loading;

pub(crate) use kernel_code::Code;
pub(crate) use library::{counts, forget_context, kernel, library, load_library, unload_library};
pub(crate) use loaded::{Function, Module, function, load_module, module, unload_module};
