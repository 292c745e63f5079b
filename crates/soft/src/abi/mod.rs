//! The C interface of the driver: its entry points, a file for each chapter of CUDA's documentation.
//!
//! An entry point checks its pointers, looks handles up, and calls the room that does the work. The
//! [`entries!`](gate) macro writes it, with the gate that it passes first: whether it works before
//! `cuInit`, with a lost device, during captures, and inside callbacks.
//!
//! ```text
//! cuGetProcAddress ── proc_address ──► ENTRIES (table.rs) ──► entry point ──► gate ──► body
//!                          └─► old_layouts (calls in layouts older than the bindings)
//! ```
//!
//! # To add a driver call
//!
//! 1. The call is in the generated table of cuda-sys (`cuda_sys::for_each_call`); until it is written
//!    here it answers `CUDA_ERROR_NOT_SUPPORTED`.
//! 2. Write it with `entries!` in the file of its chapter and name it in that file's `add`. A new
//!    file's `add` is called in [`ENTRIES`].
//! 3. If a caller cannot do without its out parameters, give the null driver (`null/`) an entry, too.
//! 4. Test it in `tests/driver/`, which runs on a GPU as well.

#[macro_use]
mod gate;

mod capture;
mod context;
mod copy;
mod device;
mod error_text;
mod event;
mod graph;
mod init;
mod ipc;
mod jit_options;
mod launch;
pub(crate) mod link;
mod managed;
mod mem_op;
mod memory;
mod module;
mod occupancy;
mod old_layouts;
mod peer;
mod pool;
mod proc_address;
mod profiler;
mod semaphore;
mod stream;
mod stream_attribute;
pub(crate) mod table;
mod tensor_map;

pub(crate) use proc_address::cuGetProcAddress;
