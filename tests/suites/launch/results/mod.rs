//! The results of kernels.

mod compiled;
mod values;
