//! The results of kernels.

mod compiled;
mod fields;
mod reference;
mod values;
