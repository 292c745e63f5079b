#![doc = include_str!("../README.md")]

#[macro_use]
mod gate;

mod callback;
mod code;
mod config;
mod context;
pub mod control;
mod copy;
mod device;
mod driver;
mod entry;
mod event;
mod fault;
mod graph;
mod handle;
mod launch;
mod memory;
mod module;
mod null;
mod pool;
mod ptx;
mod stream;

pub use config::{Config, ConfigError};

/// The software driver as the process's driver, posing as `config` says.
///
/// The configuration is applied when the loader is installed; a process has one driver, so the last call before that counts.
#[must_use]
pub fn loader(config: Config) -> cuda_sys::Loader {
    driver::configure(config);
    // SAFETY: every pointer is a function of this crate with the signature of the generated table, callable for ever.
    unsafe { cuda_sys::Loader::in_process("cuda-soft", entry::cuGetProcAddress) }
}

/// A driver that does nothing: every call answers success at once, and calls that create something give out distinct handles. With it
/// the cost of a library above the driver is measured.
#[must_use]
pub fn null_loader() -> cuda_sys::Loader {
    // SAFETY: as above; the functions write nothing but their out parameters.
    unsafe { cuda_sys::Loader::in_process("cuda-soft (null)", null::cuGetProcAddress) }
}
