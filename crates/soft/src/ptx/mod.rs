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
//! - `math`: the arithmetic of each instruction as a function over registers.
//!
//! `types`, `error`, `memory`, `special`, `windows` and `math` import none of the other modules.
//!
//! # To add an instruction
//!
//! The parser accepts any opcode with any modifiers, so it does not change.
//!
//! 1. `lower/opcodes.rs`: add the opcode to the table, with the function that lowers it. An opcode
//!    that is not in the table is unsupported.
//! 2. `lower/…`: that function takes the modifiers and operands from its `InstructionReader` and
//!    emits code. Modifiers that it does not take are refused as unsupported.
//! 3. If it computes registers from registers: a function in `math/`, emitted as `Inst::Unary`,
//!    `Binary`, `Ternary` or `Quaternary`. Nothing else changes.
//! 4. Otherwise a variant of `Inst` in `code.rs`; the compiler then names the place in
//!    `exec/interpret.rs` that executes it.
//! 5. `tests/data/instructions.py`: add each form to its list. The script generates
//!    `instructions.txt`, and records on a GPU what the instructions compute.

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
