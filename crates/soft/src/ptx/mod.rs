//! PTX on the CPU: texts are parsed and checked when they are loaded, and grids run thread by
//! thread.
//!
//! ```text
//! text ── lex ──► tokens ── parse ──► syntax ── lower ──► code (in an image) ── exec ──► memory
//!                                                 │                              │
//!                                   opcodes.rs: opcode ──► function      interpret.rs: one match
//! ```
//!
//! - `lex`, `parse`: the text as [`syntax`], names unresolved. Errors carry their line.
//! - `lower`: every name resolved, every operand checked. An instruction that the interpreter lacks
//!   is an error here, at load.
//! - `code`: the instructions that run, over numbered 64-bit registers.
//! - `exec`: a block runs on one host thread; its threads are coroutines that yield at barriers.
//!   Instructions of a whole warp (`matrix`) run when its last lane has come; asynchronous copies
//!   (`transfer`) take place when a thread waits for them.
//! - `math`: the arithmetic of each instruction as a function over registers.
//!
//! `types`, `error`, `texture`, `memory`, `special`, `windows` and `math` import none of the other
//! modules.
//!
//! The workspace's `CONTRIBUTING.md` has the steps to add an instruction.

mod code;
mod error;
mod exec;
mod global;
mod image;
mod jit;
mod lex;
mod lower;
mod math;
mod memory;
mod parse;
mod special;
mod syntax;
#[cfg(test)]
mod tests;
pub(crate) mod texture;
mod types;
mod windows;

pub(crate) use error::{Fault, FaultKind};
#[cfg(test)]
pub(crate) use exec::run;
pub(crate) use exec::{BegunGrid, MAP_OF_COLUMNS, MAP_OF_TILES, begin, finish};
pub(crate) use image::{Image, Kernel, Launch};
pub(crate) use memory::{AccessKind, Checks, DeviceMemory, Heap, MemoryFault, Span};
pub(crate) use parse::head;
pub(crate) use windows::FIRST_WINDOW;
