//! The C interface of the driver: a file of entry points for each chapter of CUDA's documentation.
//!
//! An entry point checks its pointers, looks up handles, and calls the module that does the work.
//! The `entries!` macro in `gate.rs` defines it with a gate, which decides whether the call works
//! before `cuInit`, with a lost device, during captures, and inside callbacks.
//!
//! ```text
//! cuGetProcAddress ── proc_address ──► ENTRIES ──► entry point ──► gate ──► body
//!                          ├─► old_layouts (calls in layouts older than the bindings)
//!                          └─► per_thread (variants whose default stream is the thread's own)
//! ```
//!
//! Calls of the generated table (`cuda_sys::for_each_call`) that are not written here answer
//! `CUDA_ERROR_NOT_SUPPORTED`. The workspace's `CONTRIBUTING.md` has the steps to add a driver
//! call.

#[macro_use]
mod gate;

mod array;
mod batch;
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
mod per_thread;
mod pool;
mod proc_address;
mod profiler;
mod semaphore;
mod stream;
mod stream_attribute;
pub(crate) mod table;
mod tensor_map;
mod texture;

pub(crate) use proc_address::cuGetProcAddress;
