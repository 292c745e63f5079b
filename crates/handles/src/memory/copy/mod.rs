//! Copies between memory of any kind.

mod blocking;
mod layout;
mod linear;
mod peer;
mod pitched;
mod rectangle;
mod write;

pub(crate) use layout::Shape;
pub use layout::{CopyLayout, CopySide};
pub use rectangle::{Copy2d, Copy3d};
