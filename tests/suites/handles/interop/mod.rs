//! Handles shared with other code and other processes.

mod ipc;
mod raw_handles;
