//! What kernels compute from what they were given.

mod compiled;
mod values;
