//! The C interface of the driver: a file of entry points for each chapter of CUDA's documentation.
//!
//! An entry point checks its pointers, looks up handles, and calls the module that does the work.
//! The `entries!` macro in `gate.rs` defines it with a gate, which decides whether the call works
//! before `cuInit`, with a lost device, during captures, and inside callbacks.
//!
//! ```text
//! cuGetProcAddress ── proc_address ──► ENTRIES ──► entry point ──► gate ──► body
//!                          └─► old_layouts (calls in layouts older than the bindings)
//! ```
//!
//! # To add a driver call
//!
//! 1. The call is in the generated table of cuda-sys (`cuda_sys::for_each_call`); until it is
//!    written here it answers `CUDA_ERROR_NOT_SUPPORTED`.
//! 2. Define it with `entries!` in the file of its chapter and name it in that file's `add`. The
//!    `add` of a new file is called in `ENTRIES` (`proc_address.rs`).
//! 3. If callers need its out parameters, give the null driver (`null/`) an entry, too.
//! 4. Test it in `tests/suites/driver` of the workspace, which also runs on a GPU. Behaviour of the
//!    software driver alone is tested in `tests/driver/` of this crate.

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
