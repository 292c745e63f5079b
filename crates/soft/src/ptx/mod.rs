//! PTX on the CPU: text is parsed and checked at load ([`Image::parse`]), each kernel is lowered to
//! a compact form with every name resolved, and grids of it are executed thread by thread
//! ([`run`]).
//!
//! The imports run one way: `types`, `error`, `memory`, `special` and `math` stand alone; `lex` and
//! `parse` make the `syntax`; `lower` turns it into `code` held by an `image`; `exec` runs that.

mod code;
mod error;
mod exec;
mod global;
mod image;
mod lex;
mod lower;
mod math;
mod memory;
mod parse;
mod special;
mod syntax;
#[cfg(test)]
mod tests;
mod types;
mod windows;

pub(crate) use error::FaultKind;
pub(crate) use exec::run;
pub(crate) use image::{Image, Kernel, Launch};
pub(crate) use memory::{DeviceMemory, MemoryFault, Span};
pub(crate) use parse::head;
pub(crate) use windows::FIRST_WINDOW;
