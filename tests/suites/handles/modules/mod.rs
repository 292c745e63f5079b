//! Images, libraries and kernels.

mod kernels;
mod libraries;
mod nvrtc;
mod shared_libraries;
mod waiting;
