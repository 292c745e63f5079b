//! Fills: repeating a value over memory.

mod bits;
mod clear;
mod layout;
mod size;

pub(crate) use bits::Bits;
pub use layout::FillLayout;
pub use size::assert_value;
