//! Captures as graphs.

mod matched;
mod smoke;
