//! Fills: repeating a value over memory.

mod bits;
mod clear;
mod layout;
mod size;
mod stream;

pub use layout::FillLayout;
pub use size::assert_value;
