//! Kernels as typed functions.

mod blocks;
mod condition_handles;
mod typed;
mod waiting;
