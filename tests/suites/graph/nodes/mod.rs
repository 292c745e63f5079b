//! Each type of node does what it was added to do, and tells it.

mod added;
mod batches;
mod copies;
mod events;
mod fills;
mod host_functions;
mod host_views;
pub(crate) mod kernels;
mod parts;
mod read_back;
mod removal;
#[cfg(unix)]
mod semaphores;
mod unsafe_kernels;
