//! Captures as graphs.

mod cublas;
mod matched;
mod smoke;
