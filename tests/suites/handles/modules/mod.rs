//! Images, libraries and kernels.

mod fuzzed;
mod kernels;
mod libraries;
mod nvrtc;
mod shared_libraries;
mod waiting;
