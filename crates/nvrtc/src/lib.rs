#![doc = include_str!("../README.md")]

mod api;
mod arch;
mod cache;
mod compiled;
mod compiler;
mod error;
#[doc(hidden)]
pub mod internal;
mod libraries;
mod program;
mod search;
mod version;

pub use arch::{Arch, Target};
pub use compiled::Compiled;
pub use compiler::Compiler;
pub use error::{Error, Result};
pub use program::{Program, Standard};
pub use version::{Version, newest_ptx};
